import type { Knex } from 'knex';
import type { Database } from '../../db/engine.ts';
import { type Columns, cellOf, countOf, fromColumns, toColumns } from '../../db/sql.ts';
import { inChunks } from '../../lib/collections.ts';
import type { ContestOutcome } from '../../schema/rights.ts';
import { type Contest, type ContestTexts, NO_TEXTS, type ResolverRole, type Texts } from './contest.ts';
import type { QueueFilter } from './record.ts';

/** Stores contests with their encrypted texts. */

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
 * Finds the case of a decision and kind, or the one with this id or this keyed hash of its case key; both are
 * unique across tenants.
 */
type ContestKey =
  | Pick<Contest, 'kid' | 'requestId' | 'kind'>
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

/** @returns false when the decision has a case of this kind already */
export async function insertContest(tx: Knex.Transaction, contestTexts: ContestTexts, contest: Contest) {
  const inserted = await tx('contests')
    .insert(contestToRow(contest, contestTexts))
    .onConflict(['kid', 'request_id', 'kind'])
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

/** Leaves out cases whose clock stands still: they are never late. */
export const whereRunning = (cases: Knex.QueryBuilder): Knex.QueryBuilder =>
  cases.where((running) => void running.whereNull('paused_from').orWhereNotNull('paused_to'));

export function filterContests(query: Knex.QueryBuilder, filter: QueueFilter): Knex.QueryBuilder {
  if (filter.class !== undefined) query.where('class', filter.class);
  if (filter.dueFrom !== undefined) query.where('due_at', '>=', filter.dueFrom);
  if (filter.kind !== undefined) query.where('kind', filter.kind);
  if (filter.dueBefore !== undefined) whereRunning(query.where('due_at', '<', filter.dueBefore));
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
