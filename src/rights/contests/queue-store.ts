import type { Knex } from 'knex';
import type { Database } from '../../db/engine.ts';
import { cellOf, countUpTo } from '../../db/sql.ts';
import { type Contest, type ContestTexts, LONGEST_MS } from './contest.ts';
import {
  QUEUE_GROUPS,
  type QueueCursor,
  type QueueFilter,
  type QueueQuery,
  type QueueRow,
} from './record.ts';
import { contestsIn, filterContests } from './store.ts';

/** Reads the pages and counts of the review queue, and the cases before and after a case. */

/** SQLite and PostgreSQL both answer a row comparison from the index. */
const AFTER_CURSOR = '(due_at, contest_id) > (?, ?)';

/** The reviewer who looks at the queue, and the time: expired claims count as unclaimed. */
export interface Viewer {
  readonly kid: string;
  readonly me: string;
  readonly now: number;
}

/** A limit that is never reached: claims last an hour and are made by hand. */
const MAX_CLAIMS = 1000;

/** @param contestTexts null to leave the texts encrypted */
async function claimedContests(
  database: Database,
  contestTexts: ContestTexts | null,
  { kid, now }: Omit<Viewer, 'me'>,
  filter: QueueFilter = {},
): Promise<readonly Contest[]> {
  const claimed = database.read('contests').where({ kid, status: 'open' }).where('claimed_until', '>', now);
  const contests = await contestsIn(filterContests(claimed, filter).limit(MAX_CLAIMS), contestTexts);
  return contests.toSorted((a, b) => a.dueAt - b.dueAt || (a.contestId < b.contestId ? -1 : 1));
}

function isAfter(contest: Contest, cursor: QueueCursor | null): boolean {
  if (cursor === null) return true;
  return contest.dueAt > cursor.at || (contest.dueAt === cursor.at && contest.contestId > cursor.contestId);
}

async function freePage(
  database: Database,
  contestTexts: ContestTexts,
  { kid, now }: Viewer,
  { filter, after, limit }: QueueQuery,
): Promise<QueueRow[]> {
  const query = filterContests(database.read('contests').where({ kid, status: 'open' }), filter);
  query.where((rows) => {
    rows.whereNull('claimed_until').orWhere('claimed_until', '<=', now);
  });
  // The order is by due date, so this ends the walk where no older contest can follow.
  if (filter.filedBefore !== undefined) query.where('due_at', '<=', filter.filedBefore + LONGEST_MS);
  if (after !== null) query.whereRaw(AFTER_CURSOR, [after.at, after.contestId]);
  const free = await contestsIn(query.orderBy(['due_at', 'contest_id']).limit(limit), contestTexts);
  return free.map((contest) => ({ group: 'free', contest }));
}

/** Open contests in the order of the queue. */
export async function queuePage(
  database: Database,
  contestTexts: ContestTexts,
  viewer: Viewer,
  { filter, after: cursor, limit }: QueueQuery,
): Promise<readonly QueueRow[]> {
  const claimed = await claimedContests(database, contestTexts, viewer, filter);
  const rows: QueueRow[] = [];
  const start = cursor === null ? 0 : QUEUE_GROUPS.indexOf(cursor.group);
  for (const group of QUEUE_GROUPS.slice(start)) {
    const rowsLeft = limit - rows.length;
    if (rowsLeft <= 0) break;
    const from = cursor?.group === group ? cursor : null;
    if (group === 'free') {
      rows.push(
        ...(await freePage(database, contestTexts, viewer, { filter, after: from, limit: rowsLeft })),
      );
      continue;
    }
    const groupContests = claimed.filter(
      (contest) => (contest.claim?.by === viewer.me) === (group === 'mine'),
    );
    const page = groupContests.filter((contest) => isAfter(contest, from)).slice(0, rowsLeft);
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
  const query = filterContests(database.read('contests').where({ kid, status: 'resolved' }), filter);
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
  const contestsOf = (status: string) => read('contests').where({ kid, status });
  const [open, overdue, resolved, claimed] = await Promise.all([
    countUpTo(read, contestsOf('open'), COUNT_CAP),
    countUpTo(read, contestsOf('open').where('due_at', '<', now), COUNT_CAP),
    countUpTo(read, contestsOf('resolved'), COUNT_CAP),
    claimedContests(database, null, { kid, now }),
  ]);
  const mine = claimed.filter((contest) => contest.claim?.by === me).length;
  return { open, overdue, mine, held: claimed.length - mine, resolved };
}

export interface Workload {
  readonly label: string;
  readonly actor: string;
  readonly claimed: number;
  /** The due date of the most urgent case. */
  readonly nextDueAt: number;
}

/** Counts the claimed cases per reviewer, the busiest first. */
export async function readWorkload(
  database: Database,
  kid: string,
  now: number,
): Promise<readonly Workload[]> {
  const load = new Map<string, Workload>();
  for (const { claim, dueAt } of await claimedContests(database, null, { kid, now })) {
    if (claim === null) continue;
    const { by: actor, label } = claim;
    // The first case of each reviewer is the most urgent, because the order is by due date.
    const { claimed = 0, nextDueAt = dueAt } = load.get(actor) ?? {};
    load.set(actor, { actor, label, claimed: claimed + 1, nextDueAt });
  }
  return [...load.values()].sort((a, b) => b.claimed - a.claimed);
}

/** Counts open contests by the days left, one count per bucket of `bounds`. */
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

const DUE_ORDER = [
  { column: 'due_at', order: 'asc' },
  { column: 'contest_id', order: 'asc' },
];
const REVERSE_ORDER = DUE_ORDER.map(({ column }) => ({ column, order: 'desc' }));

/** Open cases that this reviewer may rule on now. */
function casesToWorkOn({ read }: Database, { kid, me, now }: Viewer): Knex.QueryBuilder {
  return read('contests')
    .where({ kid, status: 'open' })
    .whereNot('filed_by', me)
    .where((free) => {
      free.whereNull('claimed_until').orWhere('claimed_until', '<=', now).orWhere('claimed_by', me);
    })
    .where((undecided) => {
      undecided.whereNull('proposed_by').orWhereNot('proposed_by', me);
    });
}

type Place = Pick<Contest, 'contestId' | 'dueAt'>;

/**
 * The case to open after this one: the next by due date that the reviewer may rule on, or else the most
 * urgent one.
 */
export async function findNextCase(database: Database, viewer: Viewer, place: Place): Promise<string | null> {
  const { dueAt, contestId } = place;
  const following = casesToWorkOn(database, viewer).whereRaw(AFTER_CURSOR, [dueAt, contestId]);
  const firstOf = (cases: Knex.QueryBuilder) => cellOf<string>(cases.orderBy(DUE_ORDER), 'contest_id');
  const others = casesToWorkOn(database, viewer).whereNot('contest_id', contestId);
  return (await firstOf(following)) ?? (await firstOf(others)) ?? null;
}

/**
 * The cases around an open case by due date, and its place among all that are overdue, or among all that are
 * open. Counts stop at COUNT_CAP.
 */
export async function readNeighbours(database: Database, viewer: Viewer, { dueAt, contestId }: Place) {
  const { read } = database;
  const { kid, now } = viewer;
  const key = [dueAt, contestId];
  const open = () => read('contests').where({ kid, status: 'open' });
  const isOverdue = dueAt < now;
  const group = () => (isOverdue ? open().where('due_at', '<', now) : open());
  const [previous, next, before, total] = await Promise.all([
    cellOf<string>(
      open().whereRaw('(due_at, contest_id) < (?, ?)', key).orderBy(REVERSE_ORDER),
      'contest_id',
    ),
    cellOf<string>(open().whereRaw(AFTER_CURSOR, key).orderBy(DUE_ORDER), 'contest_id'),
    countUpTo(read, group().whereRaw('(due_at, contest_id) < (?, ?)', key), COUNT_CAP),
    countUpTo(read, group(), COUNT_CAP),
  ]);
  return { previous: previous ?? null, next: next ?? null, place: before + 1, total, isOverdue };
}
