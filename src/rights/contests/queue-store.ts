import type { Database } from '../../db/db.ts';
import { countUpTo } from '../../db/sql.ts';
import type { Contest } from './contest.ts';
import type { ContestTexts } from './contest-text.ts';
import { LONGEST_MS } from './due.ts';
import {
  QUEUE_GROUPS,
  type QueueCursor,
  type QueueFilter,
  type QueueQuery,
  type QueueRow,
} from './record.ts';
import { contestsIn, narrow } from './store.ts';

/** Pages of the review queue. */

/** SQLite and PostgreSQL both read a row comparison off the index. */
const AFTER = '(due_at, contest_id) > (?, ?)';

/** Who looks, and when: expired claims count as unclaimed. */
export interface Viewer {
  readonly kid: string;
  readonly me: string;
  readonly now: number;
}

/** Claims last an hour and are made by hand: there are only as many as people can click. */
const MAX_CLAIMS = 1000;

/** @param contestTexts null: what was written is left closed */
async function claimedContests(
  database: Database,
  contestTexts: ContestTexts | null,
  { kid, now }: Omit<Viewer, 'me'>,
  filter: QueueFilter = {},
): Promise<readonly Contest[]> {
  const claimed = database.read('contests').where({ kid, status: 'open' }).where('claimed_until', '>', now);
  const contests = await contestsIn(narrow(claimed, filter).limit(MAX_CLAIMS), contestTexts);
  return contests.toSorted((a, b) => a.dueAt - b.dueAt || (a.contestId < b.contestId ? -1 : 1));
}

function isAfter(contest: Contest, after: QueueCursor | null): boolean {
  if (after === null) return true;
  return contest.dueAt > after.at || (contest.dueAt === after.at && contest.contestId > after.contestId);
}

async function freePage(
  database: Database,
  contestTexts: ContestTexts,
  { kid, now }: Viewer,
  { filter, after, limit }: QueueQuery,
): Promise<QueueRow[]> {
  const query = narrow(database.read('contests').where({ kid, status: 'open' }), filter);
  query.where((free) => {
    free.whereNull('claimed_until').orWhere('claimed_until', '<=', now);
  });
  // The order is by due date: this ends the walk where older ones cannot come.
  if (filter.filedBefore !== undefined) query.where('due_at', '<=', filter.filedBefore + LONGEST_MS);
  if (after !== null) query.whereRaw(AFTER, [after.at, after.contestId]);
  const free = await contestsIn(query.orderBy(['due_at', 'contest_id']).limit(limit), contestTexts);
  return free.map((contest) => ({ group: 'free', contest }));
}

/** Open contests in the order of the queue. */
export async function queuePage(
  database: Database,
  contestTexts: ContestTexts,
  viewer: Viewer,
  { filter, after, limit }: QueueQuery,
): Promise<readonly QueueRow[]> {
  const claimed = await claimedContests(database, contestTexts, viewer, filter);
  const rows: QueueRow[] = [];
  const start = after === null ? 0 : QUEUE_GROUPS.indexOf(after.group);
  for (const group of QUEUE_GROUPS.slice(start)) {
    const left = limit - rows.length;
    if (left <= 0) break;
    const from = after?.group === group ? after : null;
    if (group === 'free') {
      rows.push(...(await freePage(database, contestTexts, viewer, { filter, after: from, limit: left })));
      continue;
    }
    const own = claimed.filter((contest) => (contest.claim?.by === viewer.me) === (group === 'mine'));
    const page = own.filter((contest) => isAfter(contest, from)).slice(0, left);
    rows.push(...page.map((contest) => ({ group, contest })));
  }
  return rows;
}

/** Resolved contests, the latest first. */
export async function resolvedPage(
  database: Database,
  contestTexts: ContestTexts,
  kid: string,
  { filter, after, limit }: QueueQuery,
): Promise<readonly Contest[]> {
  const query = narrow(database.read('contests').where({ kid, status: 'resolved' }), filter);
  if (after !== null) query.whereRaw('(resolved_at, contest_id) < (?, ?)', [after.at, after.contestId]);
  const order = [
    { column: 'resolved_at', order: 'desc' },
    { column: 'contest_id', order: 'desc' },
  ];
  return contestsIn(query.orderBy(order).limit(limit), contestTexts);
}

/** Counts stop here: a page must not cost more because a queue is long. */
export const COUNT_CAP = 1000;

/** More than COUNT_CAP is COUNT_CAP + 1. */
export async function queueCounts(database: Database, { kid, me, now }: Viewer) {
  const { read } = database;
  const of = (status: string) => read('contests').where({ kid, status });
  const [open, overdue, resolved, claimed] = await Promise.all([
    countUpTo(read, of('open'), COUNT_CAP),
    countUpTo(read, of('open').where('due_at', '<', now), COUNT_CAP),
    countUpTo(read, of('resolved'), COUNT_CAP),
    claimedContests(database, null, { kid, now }),
  ]);
  const mine = claimed.filter((contest) => contest.claim?.by === me).length;
  return { open, overdue, mine, held: claimed.length - mine, resolved };
}

export interface Workload {
  readonly label: string;
  readonly actor: string;
  readonly claimed: number;
  /** The due date of the most urgent one. */
  readonly nextDueAt: number;
}

/** Who holds how many cases now, the busiest first. */
export async function workload(database: Database, kid: string, now: number): Promise<readonly Workload[]> {
  const load = new Map<string, Workload>();
  for (const { claim, dueAt } of await claimedContests(database, null, { kid, now })) {
    if (claim === null) continue;
    const { by: actor, label } = claim;
    // The first one of each is the most urgent: they come by due date.
    const { claimed = 0, nextDueAt = dueAt } = load.get(actor) ?? {};
    load.set(actor, { actor, label, claimed: claimed + 1, nextDueAt });
  }
  return [...load.values()].sort((a, b) => b.claimed - a.claimed);
}

/** Open contests by the days that are left, as many as there are in each bucket of `bounds`. */
export function openByDue(
  { read }: Database,
  kid: string,
  bounds: readonly (readonly [from: number, to: number])[],
): Promise<readonly number[]> {
  const counts = bounds.map(([from, to]) => {
    const open = read('contests').where({ kid, status: 'open' }).where('due_at', '>=', from);
    return countUpTo(read, open.where('due_at', '<', to), COUNT_CAP);
  });
  return Promise.all(counts);
}
