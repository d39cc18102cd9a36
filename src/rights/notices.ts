import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { DAY, isoTime, MINUTE } from '../lib/clock.ts';
import { notify } from '../notify/notify.ts';
import { type Contest, SOON_DAYS } from './contests/contest.ts';
import { type ContestDeps, notifyOf, tenantFor } from './contests/service.ts';
import { lockContest } from './contests/store.ts';
import { UNFINISHED } from './erase/receipts.ts';

/** Notices that become due with time. Every node looks; mark and notice are one transaction, so each is sent once. */

/** By then a round has tried to finish it. */
const LATE_MS = 2 * MINUTE;

/** @param now a steady one: a notice cannot be taken back */
export async function tellDue(deps: ContestDeps, kid: string, now: number): Promise<void> {
  for (const contestId of await dueContests(deps.database, kid, now)) {
    await deps.database.transaction(async (tx) => {
      const contest = await lockContest(tx, deps.contestTexts, contestId);
      const level = contest ? dueLevel(contest, now) : 0;
      if (!contest || level === 0 || !(await markDue(tx, contestId, level))) return;
      await notifyOf(deps, { tx, contest, now }, level === 1 ? 'contest.due-soon' : 'contest.overdue');
    });
  }
}

export async function tellUnfinished(deps: ContestDeps, kid: string, now: number): Promise<void> {
  const tenant = tenantFor(deps, kid);
  for (const { receiptId, erasedAt } of await unfinishedReceipts(deps.database, kid, now - LATE_MS)) {
    const data = { receiptId, erasedAt: isoTime(erasedAt), incomplete: true };
    await deps.database.transaction(async (tx) => {
      if (!(await markUnfinished(tx, receiptId))) return;
      await notify(tx, tenant, { event: 'erasure.incomplete', data, number: receiptId, at: now });
    });
  }
}

/** Finds the notices that are due, and marks them as sent. */

const SOON_MS = SOON_DAYS * DAY;
/** At most this many per round; the next round continues. */
const MAX_AT_ONCE = 500;

/** The notice that a due date has come to: 0 none, 1 due soon, 2 overdue. */
const dueLevel = ({ dueAt, status }: Pick<Contest, 'dueAt' | 'status'>, now: number): number =>
  status !== 'open' || dueAt >= now + SOON_MS ? 0 : dueAt >= now ? 1 : 2;

/** Ids of open contests with a notice to send. */
async function dueContests({ read }: Database, kid: string, now: number): Promise<readonly string[]> {
  const late = read('contests').where({ kid, status: 'open' }).where('due_notice', '<', 2);
  const soon = read('contests').where({ kid, status: 'open' }).where('due_notice', '<', 1);
  const pages = await Promise.all([
    late.where('due_at', '<', now).limit(MAX_AT_ONCE).pluck('contest_id'),
    soon
      .whereBetween('due_at', [now, now + SOON_MS - 1])
      .limit(MAX_AT_ONCE)
      .pluck('contest_id'),
  ]);
  return pages.flat() as string[];
}

/** @returns whether this call marked it: of many nodes one does */
async function markDue(tx: Knex.Transaction, contestId: string, level: number): Promise<boolean> {
  const untold = tx('contests')
    .where({ contest_id: contestId, status: 'open' })
    .where('due_notice', '<', level);
  return ((await untold.update({ due_notice: level })) as unknown as number) === 1;
}

/** Erasures that began by then, are not done and have not been reported. */
async function unfinishedReceipts({ read }: Database, kid: string, before: number) {
  const found = read('erasures')
    .where({ kid, noticed: false })
    .whereIn('step', UNFINISHED)
    .where('erased_at', '<=', before);
  return (await found
    .orderBy(['erased_at', 'receipt_id'])
    .limit(MAX_AT_ONCE)
    .select({ receiptId: 'receipt_id', erasedAt: 'erased_at' })) as { receiptId: string; erasedAt: number }[];
}

/** @returns as `markDue` */
async function markUnfinished(tx: Knex.Transaction, receiptId: string): Promise<boolean> {
  const untold = tx('erasures').where({ receipt_id: receiptId, noticed: false }).whereIn('step', UNFINISHED);
  return ((await untold.update({ noticed: true })) as unknown as number) === 1;
}
