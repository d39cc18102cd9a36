import { tell } from '../consent/tell-service.ts';
import { isoTime, MINUTE } from '../lib/clock.ts';
import { type ContestDeps, tellOf, tenantFor } from './contests/change-service.ts';
import { lockContest } from './contests/store.ts';
import { dueContests, dueLevel, markDue, markUnfinished, unfinishedReceipts } from './notices-store.ts';

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
      await tellOf(deps, { tx, contest, now }, level === 1 ? 'contest.due-soon' : 'contest.overdue');
    });
  }
}

export async function tellUnfinished(deps: ContestDeps, kid: string, now: number): Promise<void> {
  const tenant = tenantFor(deps, kid);
  for (const { receiptId, erasedAt } of await unfinishedReceipts(deps.database, kid, now - LATE_MS)) {
    const data = { receiptId, erasedAt: isoTime(erasedAt), incomplete: true };
    await deps.database.transaction(async (tx) => {
      if (!(await markUnfinished(tx, receiptId))) return;
      await tell(tx, tenant, { event: 'erasure.incomplete', data, number: receiptId, at: now });
    });
  }
}
