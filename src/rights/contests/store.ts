import type { Knex } from 'knex';
import type { Database } from '../../db/engine.ts';
import { type Columns, cellOf, countOf, countUpTo, fromColumns, toColumns } from '../../db/sql.ts';
import { inChunks } from '../../lib/collections.ts';
import type { ContestOutcome } from '../../schema/rights.ts';
import {
  type Contest,
  type ContestTexts,
  LONGEST_MS,
  NO_TEXTS,
  type ResolverRole,
  type Texts,
} from './contest.ts';
import {
  QUEUE_GROUPS,
  type QueueCursor,
  type QueueFilter,
  type QueueQuery,
  type QueueRow,
} from './record.ts';

/** Stores contests with their encrypted texts, and reads the pages of the queue. */

type Plain = Omit<Contest, 'claim' | 'proposal' | 'resolvedBy' | Exclude<keyof Texts, 'caseHash'>>;

type TextColumn = 'resolved_by' | `claimed_${'by' | 'label'}` | `proposed_${'by' | 'label'}` | 'sealed';

export type ContestRow = Columns<Plain> &
  Readonly<Record<TextColumn, string | null> & Record<'claimed_until' | 'proposed_at', number | null>> & {
    readonly resolved_role: ResolverRole | null;
    readonly proposed_outcome: ContestOutcome | null;
  };

function textsOf({ kid, contest_id: contestId, sealed }: ContestRow, contestTexts: ContestTexts): Texts {
  return sealed === null ? NO_TEXTS : contestTexts.decrypt(kid, contestId, sealed);
}

/** Decrypts a row for an export of the tenant, whose key is deleted with it. */
export function decryptRow(row: ContestRow, contestTexts: ContestTexts): object {
  const { sealed: _, case_hash: _hash, case_network: _network, ...rest } = row;
  const { proposedReason, caseHash: _encrypted, ...texts } = textsOf(row, contestTexts);
  return { ...rest, ...texts, proposed_reason: proposedReason };
}

/** @param contestTexts null to leave the texts encrypted; they are null then */
function rowToContest(row: ContestRow, contestTexts: ContestTexts | null): Contest {
  const { proposedReason, ...texts } = contestTexts === null ? NO_TEXTS : textsOf(row, contestTexts);
  const { resolved_role: role, resolved_by: ref, sealed: _, ...claimedRow } = row;
  const { claimed_by: holder, claimed_label, claimed_until: claimedUntil, ...unclaimed } = claimedRow;
  const {
    proposed_outcome: outcome,
    proposed_by: by,
    proposed_label: label,
    proposed_at,
    ...plain
  } = unclaimed;
  const reason = proposedReason ?? '';
  return {
    ...fromColumns<Plain>(plain),
    ...texts,
    resolvedBy: role === null || ref === null ? null : { role, ref },
    claim:
      holder === null || claimedUntil === null
        ? null
        : { by: holder, label: claimed_label ?? '', until: claimedUntil },
    proposal:
      outcome === null || by === null ? null : { outcome, reason, by, label, at: Number(proposed_at) },
  };
}

function contestToRow(contest: Contest, contestTexts: ContestTexts): ContestRow {
  const { claim, proposal, resolvedBy, ...rest } = contest;
  const { kid, contestId } = contest;
  const plain = Object.entries(rest).filter(([name]) => name === 'caseHash' || !(name in NO_TEXTS));
  return {
    ...toColumns(Object.fromEntries(plain) as Plain),
    resolved_role: resolvedBy?.role ?? null,
    resolved_by: resolvedBy?.ref ?? null,
    claimed_by: claim?.by ?? null,
    claimed_label: claim?.label ?? null,
    claimed_until: claim?.until ?? null,
    proposed_outcome: proposal?.outcome ?? null,
    proposed_by: proposal?.by ?? null,
    proposed_label: proposal?.label ?? null,
    proposed_at: proposal?.at ?? null,
    sealed: contestTexts.encrypt(kid, contestId, { ...contest, proposedReason: proposal?.reason ?? null }),
  };
}

export async function contestsIn(
  query: Knex.QueryBuilder,
  contestTexts: ContestTexts | null,
): Promise<readonly Contest[]> {
  return ((await query) as ContestRow[]).map((row) => rowToContest(row, contestTexts));
}

async function readOne(query: Knex.QueryBuilder, contestTexts: ContestTexts): Promise<Contest | null> {
  const row = await query.first<ContestRow | undefined>();
  return row ? rowToContest(row, contestTexts) : null;
}

/**
 * Finds the contest of a decision, or the one with this id or this keyed hash of its case key; both are
 * unique across tenants.
 */
type ContestKey =
  | Pick<Contest, 'kid' | 'requestId'>
  | Pick<Contest, 'contestId'>
  | { readonly caseHash: string };

export function findContest(db: Knex, contestTexts: ContestTexts, key: ContestKey) {
  return readOne(db('contests').where(toColumns(key)), contestTexts);
}

export async function isContested(database: Database, kid: string, requestId: string): Promise<boolean> {
  const contests = database.read('contests').where({ kid, request_id: requestId });
  return (await cellOf(contests, 'contest_id')) !== undefined;
}

/**
 * Counts open contests that an erasure of these devices and requests would delete, with the first due date.
 */
export async function openContests(
  { read }: Database,
  kid: string,
  { durables, requests }: { readonly durables: readonly string[]; readonly requests: readonly string[] },
) {
  const dueDates = new Map<string, number>();
  for (const [column, values] of [
    ['durable', durables],
    ['request_id', requests],
  ] as const)
    await inChunks(values, async (chunk) => {
      const contests = read('contests').where({ kid, status: 'open' }).whereIn(column, chunk);
      const rows = (await contests.select('contest_id', 'due_at')) as {
        contest_id: string;
        due_at: number;
      }[];
      for (const row of rows) dueDates.set(row.contest_id, Number(row.due_at));
    });
  return { count: dueDates.size, dueAt: Math.min(...dueDates.values()) };
}

/** Reads a contest and locks it until the transaction ends. */
export function lockContest(tx: Knex.Transaction, contestTexts: ContestTexts, contestId: string) {
  const query = tx('contests').where({ contest_id: contestId });
  return readOne(query.forUpdate(), contestTexts);
}

/** @returns false when the decision has a contest already */
export async function insertContest(tx: Knex.Transaction, contestTexts: ContestTexts, contest: Contest) {
  const inserted = await tx('contests')
    .insert(contestToRow(contest, contestTexts))
    .onConflict(['kid', 'request_id'])
    .ignore()
    .returning('contest_id');
  return inserted.length === 1;
}

/** The caller has locked the contest. */
export async function updateContest(tx: Knex.Transaction, contestTexts: ContestTexts, contest: Contest) {
  const { kid, contestId } = contest;
  await tx('contests').where({ kid, contest_id: contestId }).update(contestToRow(contest, contestTexts));
}

/** Inserts the neverAutomation override of a device; an existing one stays. */
export async function insertOverride(
  tx: Knex.Transaction,
  { kid, durable, requestId, at }: Record<'kid' | 'durable' | 'requestId', string> & { readonly at: number },
): Promise<void> {
  await tx('overrides')
    .insert({ kid, durable, created_at: at, request_id: requestId })
    .onConflict(['kid', 'durable'])
    .ignore();
}

export interface ContestFilter extends QueueFilter {
  readonly status?: 'open' | 'resolved' | undefined;
  readonly requestId?: string | undefined;
  /** The page begins after this contest, in the order of due date and id. */
  readonly after?: { readonly dueAt: number; readonly contestId: string } | undefined;
}

function filterContests(query: Knex.QueryBuilder, filter: QueueFilter): Knex.QueryBuilder {
  if (filter.class !== undefined) query.where('class', filter.class);
  if (filter.dueBefore !== undefined) query.where('due_at', '<', filter.dueBefore);
  if (filter.filedBefore !== undefined) query.where('filed_at', '<', filter.filedBefore);
  return query;
}

/** Lists contests by due date, the most urgent first. */
export async function listContests(
  database: Database,
  contestTexts: ContestTexts,
  kid: string,
  filter: ContestFilter,
  limit: number,
): Promise<readonly Contest[]> {
  const query = filterContests(database.read('contests').where({ kid }), filter);
  if (filter.status !== undefined) query.where('status', filter.status);
  if (filter.requestId !== undefined) query.where('request_id', filter.requestId);
  const { after } = filter;
  if (after !== undefined) query.whereRaw('(due_at, contest_id) > (?, ?)', [after.dueAt, after.contestId]);
  return contestsIn(query.orderBy(['due_at', 'contest_id']).limit(limit), contestTexts);
}

/** Open cases that were filed from this network today; marks of earlier days are deleted. */
export async function countCases(tx: Knex.Transaction, kid: string, caseNetwork: string, today: number) {
  await tx('contests')
    .where({ kid })
    .whereNotNull('case_network')
    .where('filed_at', '<', today)
    .update({ case_network: null });
  return countOf(tx('contests').where({ kid, case_network: caseNetwork, status: 'open' }));
}

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
