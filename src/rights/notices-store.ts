import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { DAY, isoTime, MINUTE } from '../lib/clock.ts';
import { notify } from '../notify/notify-service.ts';
import { type Contest, isPaused } from './contests/contest.ts';
import { SOON_DAYS } from './contests/period.ts';
import { notifyOf, tenantFor } from './contests/service.ts';
import { lockContest, whereRunning } from './contests/store.ts';
import { UNFINISHED } from './erase/receipts-store.ts';
import type { RightsParts } from './subject.ts';

/**
 * Notices that become due with time, sent by housekeeping. Every node looks; one transaction marks the row
 * and queues the notice, so that each is sent once.
 */

/** After this time a round of housekeeping has tried to finish the erasure. */
const LATE_MS = 2 * MINUTE;

/** @param now time of a clock that never jumps: a notice cannot be taken back */
export async function notifyDueContests(deps: RightsParts, kid: string, now: number): Promise<void> {
  for (const contestId of await readDueContests(deps.database, kid, now)) {
    await deps.database.transaction(async (tx) => {
      const contest = await lockContest(tx, deps.contestTexts, contestId);
      const level = contest ? dueLevel(contest, now) : 0;
      if (!contest || level === 0 || !(await markDue(tx, contestId, level))) return;
      await notifyOf(deps, { tx, contest, now }, level === 1 ? 'contest.due-soon' : 'contest.overdue');
    });
  }
}

export async function notifyUnfinishedErasures(deps: RightsParts, kid: string, now: number): Promise<void> {
  const tenant = tenantFor(deps, kid);
  for (const { receiptId, erasedAt } of await readUnfinishedReceipts(deps.database, kid, now - LATE_MS)) {
    const data = { receiptId, erasedAt: isoTime(erasedAt), incomplete: true };
    await deps.database.transaction(async (tx) => {
      if (!(await markUnfinished(tx, receiptId))) return;
      await notify(tx, tenant, { event: 'erasure.incomplete', data, number: receiptId, at: now });
    });
  }
}

const SOON_MS = SOON_DAYS * DAY;
/** At most this many per round; the next round continues. */
const MAX_AT_ONCE = 500;

/** @returns the notice to send for a due date: 0 none, 1 due soon, 2 overdue */
function dueLevel(contest: Contest, now: number): number {
  const { dueAt, status } = contest;
  if (status !== 'open' || isPaused(contest) || dueAt >= now + SOON_MS) return 0;
  return dueAt >= now ? 1 : 2;
}

/** Ids of open contests with a notice to send. */
async function readDueContests({ read }: Database, kid: string, now: number): Promise<readonly string[]> {
  const openContests = () => whereRunning(read('contests').where({ kid, status: 'open' }));
  const overdueContests = openContests().where('due_notice', '<', 2);
  const dueSoonContests = openContests().where('due_notice', '<', 1);
  const pages = await Promise.all([
    overdueContests.where('due_at', '<', now).limit(MAX_AT_ONCE).pluck('contest_id'),
    dueSoonContests
      .whereBetween('due_at', [now, now + SOON_MS - 1])
      .limit(MAX_AT_ONCE)
      .pluck('contest_id'),
  ]);
  return pages.flat() as string[];
}

/** @returns whether this call marked the contest: only one of several nodes does */
async function markDue(tx: Knex.Transaction, contestId: string, level: number): Promise<boolean> {
  const unmarked = tx('contests')
    .where({ contest_id: contestId, status: 'open' })
    .where('due_notice', '<', level);
  return ((await unmarked.update({ due_notice: level })) as unknown as number) === 1;
}

/** Reads erasures that began by `before`, are not done and have not been reported. */
async function readUnfinishedReceipts({ read }: Database, kid: string, before: number) {
  const unfinishedErasures = read('erasures')
    .where({ kid, noticed: false })
    .whereIn('state', UNFINISHED)
    .where('erased_at', '<=', before);
  return (await unfinishedErasures
    .orderBy(['erased_at', 'receipt_id'])
    .limit(MAX_AT_ONCE)
    .select({ receiptId: 'receipt_id', erasedAt: 'erased_at' })) as { receiptId: string; erasedAt: number }[];
}

/** @returns whether this call marked the erasure: only one of several nodes does */
async function markUnfinished(tx: Knex.Transaction, receiptId: string): Promise<boolean> {
  const unmarked = tx('erasures')
    .where({ receipt_id: receiptId, noticed: false })
    .whereIn('state', UNFINISHED);
  return ((await unmarked.update({ noticed: true })) as unknown as number) === 1;
}
