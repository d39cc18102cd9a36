import type { Knex } from 'knex';
import type { Database } from '../../db/engine.ts';
import { cellOf, countUpTo } from '../../db/sql.ts';
import { DAY } from '../../lib/clock.ts';
import { type Contest, type ContestTexts, isPaused } from './contest.ts';
import { LONGEST_MS } from './period.ts';
import { cursorOf, type QueueQuery } from './record.ts';
import { contestsIn, filterContests, whereRunning } from './store.ts';

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

const claimedCases = ({ read }: Database, { kid, now }: Omit<Viewer, 'me'>): Knex.QueryBuilder =>
  read('contests').where({ kid, status: 'open' }).where('claimed_until', '>', now);

/** Open cases that nobody else holds. */
const withoutOthersClaims = (cases: Knex.QueryBuilder, { me, now }: Viewer): Knex.QueryBuilder =>
  cases.where((free) => {
    free.whereNull('claimed_until').orWhere('claimed_until', '<=', now).orWhere('claimed_by', me);
  });

/** Cases that this reviewer holds, and proposals of colleagues that nobody else holds. */
async function waitingIds(database: Database, viewer: Viewer): Promise<readonly string[]> {
  const { kid, me } = viewer;
  const open = database.read('contests').where({ kid, status: 'open' });
  const proposed = open.whereNotNull('proposed_by').whereNot('proposed_by', me).whereNot('filed_by', me);
  const [mine, proposals] = (await Promise.all([
    claimedCases(database, viewer).where('claimed_by', me).limit(MAX_CLAIMS).pluck('contest_id'),
    withoutOthersClaims(proposed, viewer).limit(MAX_CLAIMS).pluck('contest_id'),
  ])) as [string[], string[]];
  return [...new Set([...mine, ...proposals])];
}

export const countWaiting = async (database: Database, viewer: Viewer): Promise<number> =>
  (await waitingIds(database, viewer)).length;

async function holdersNamed(database: Database, viewer: Viewer, words: string): Promise<readonly string[]> {
  const claims = claimedCases(database, viewer).distinct('claimed_by', 'claimed_label').limit(MAX_CLAIMS);
  const holders = (await claims) as { claimed_by: string; claimed_label: string | null }[];
  const lowered = words.toLowerCase();
  return holders
    .filter(({ claimed_label: label }) => label?.toLowerCase().includes(lowered))
    .map(({ claimed_by: holder }) => holder);
}

type Selection = Pick<QueueQuery, 'status' | 'filter' | 'list' | 'holder'>;

/** @returns a function that begins a query for the rows of the selection */
async function selectCases(database: Database, viewer: Viewer, selection: Selection) {
  const { status, filter, list, holder } = selection;
  const { kid, now } = viewer;
  const ids = list === 'waiting' ? await waitingIds(database, viewer) : null;
  const holders = holder === undefined ? null : await holdersNamed(database, viewer, holder);
  return (): Knex.QueryBuilder => {
    const cases = filterContests(database.read('contests').where({ kid, status }), filter);
    if (ids) cases.whereIn('contest_id', ids);
    if (holders) cases.whereIn('claimed_by', holders).where('claimed_until', '>', now);
    if (list === 'asked') cases.whereNotNull('asked_at').whereNull('answered_at');
    if (list === 'answered') cases.whereNotNull('asked_at').whereNotNull('answered_at');
    if (list === 'proposed') cases.whereNotNull('proposed_by');
    // The order is mostly by due date, so this ends the walk where no older contest can follow.
    const last = (filter.filedBefore ?? 0) + LONGEST_MS;
    if (filter.filedBefore !== undefined)
      cases.where((older) => void older.where('due_at', '<=', last).orWhereNotNull('paused_from'));
    return cases;
  };
}

const COLUMNS = {
  due: { column: 'due_at', order: 'asc' },
  oldest: { column: 'filed_at', order: 'asc' },
  newest: { column: 'filed_at', order: 'desc' },
  resolved: { column: 'resolved_at', order: 'desc' },
} as const;

const columnOf = ({ status, order }: Pick<QueueQuery, 'status' | 'order'>) =>
  COLUMNS[status === 'resolved' ? 'resolved' : order];

/**
 * Reads a page of the queue, and one row more to tell whether another page follows. `place` counts the rows
 * before the page. Counts stop at COUNT_CAP.
 */
export async function queuePage(
  database: Database,
  contestTexts: ContestTexts,
  viewer: Viewer,
  query: QueueQuery,
) {
  const { cursor, isBackward, limit } = query;
  const begin = await selectCases(database, viewer, query);
  const { column, order } = columnOf(query);
  const isRising = (order === 'asc') !== isBackward;
  const isPast = (rising: boolean) => `(${column}, contest_id) ${rising ? '>' : '<'} (?, ?)`;
  const rows = begin();
  if (cursor) rows.whereRaw(isPast(isRising), [cursor.at, cursor.contestId]);
  const direction = isRising ? 'asc' : 'desc';
  const sorting = [column, 'contest_id'].map((name) => ({ column: name, order: direction }));
  const found = await contestsIn(rows.orderBy(sorting).limit(limit), contestTexts);
  const contests = isBackward ? found.toReversed() : found;
  const [first] = contests;
  const top = first && cursorOf(query, first);
  const [place, total] = await Promise.all([
    top && cursor
      ? countUpTo(
          database.read,
          begin().whereRaw(isPast(order !== 'asc'), [top.at, top.contestId]),
          COUNT_CAP,
        )
      : 0,
    countUpTo(database.read, begin(), COUNT_CAP),
  ]);
  return { contests, place, total };
}

/** Counts stop here: a page must not cost more because a queue is long. */
export const COUNT_CAP = 1000;

/** A week from now: the cases that are due next. */
const WEEK = 7 * DAY;

/** More than COUNT_CAP is COUNT_CAP + 1. */
export async function queueCounts(database: Database, viewer: Viewer) {
  const { read } = database;
  const { kid, now } = viewer;
  const contestsOf = (status: string) => read('contests').where({ kid, status });
  const open = () => contestsOf('open');
  const [all, overdue, week, waiting, unanswered, resolved] = await Promise.all([
    countUpTo(read, open(), COUNT_CAP),
    countUpTo(read, whereRunning(open()).where('due_at', '<', now), COUNT_CAP),
    countUpTo(
      read,
      whereRunning(open())
        .where('due_at', '>=', now)
        .where('due_at', '<', now + WEEK),
      COUNT_CAP,
    ),
    waitingIds(database, viewer),
    countUpTo(read, open().whereNotNull('asked_at').whereNull('answered_at'), COUNT_CAP),
    countUpTo(read, contestsOf('resolved'), COUNT_CAP),
  ]);
  return { open: all, overdue, week, waiting: waiting.length, asked: unanswered, resolved };
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
  const claims = claimedCases(database, { kid, now }).orderBy(DUE_ORDER).limit(MAX_CLAIMS);
  for (const { claim, dueAt } of await contestsIn(claims, null)) {
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
    const open = whereRunning(read('contests').where({ kid, status: 'open' })).where('due_at', '>=', from);
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
function casesToWorkOn(database: Database, viewer: Viewer): Knex.QueryBuilder {
  const { kid, me } = viewer;
  const open = database.read('contests').where({ kid, status: 'open' }).whereNot('filed_by', me);
  return withoutOthersClaims(open, viewer).where((undecided) => {
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
  const otherCases = casesToWorkOn(database, viewer).whereNot('contest_id', contestId);
  return (await firstOf(following)) ?? (await firstOf(otherCases)) ?? null;
}

/**
 * The cases around an open case by due date, and its place among all that are overdue, or among all that are
 * open. Counts stop at COUNT_CAP.
 */
export async function readNeighbours(database: Database, viewer: Viewer, place: Contest) {
  const { read } = database;
  const { kid, now } = viewer;
  const { dueAt, contestId } = place;
  const key = [dueAt, contestId];
  const open = () => read('contests').where({ kid, status: 'open' });
  const isOverdue = dueAt < now && !isPaused(place);
  const group = () => (isOverdue ? whereRunning(open()).where('due_at', '<', now) : open());
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
