import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { cellOf, isTrue, pagesOf } from '../db/sql.ts';
import { createMasterKey, principalKeyContext } from '../keys/master-key.ts';
import type { DoubtDetail, EntryDetail } from '../ledger/entries.ts';
import { type StoredEntry, textsSince } from '../log/entries-store.ts';
import type { Fold } from '../log/fold.ts';
import { parseStored } from '../log/fold.ts';
import type { Problems } from '../log/problems.ts';
import { GIVEN_BY } from './decide.ts';
import { type CommitmentRow, opensBody, saysSame } from './openings-store.ts';
import { isOptedOut, type PrincipalColumns, type StateColumns, toStateRow } from './state-store.ts';

/**
 * Compares openings with the commitments of their entries, then the rows that checks read with the last
 * opening of each principal and purpose. Each page is read from one snapshot, so that a write, an erasure or
 * a removal meanwhile does not look like tampering.
 */

const PAGE = 1000;
const ABOUT_PEOPLE = /^consent\./;

export interface PeopleCheck {
  readonly database: Database;
  readonly kid: string;
  /** The tenant's key that wraps its principals' keys; null to leave commitments unopened. */
  readonly wrapKey: Uint8Array | null;
  readonly problems: Problems;
}

interface CheckedCommitment extends Omit<CommitmentRow, 'kid'> {
  readonly wrapped_key: string | null;
  readonly state_seq: number | null;
  readonly doubt_seq: number | null;
}

function openingsOf(tx: Knex, kid: string, first: number, last: number): Knex.QueryBuilder {
  return tx('consent_openings as o')
    .leftJoin('consent_principals as p', (on) => on.on('p.kid', 'o.kid').on('p.principal', 'o.principal'))
    .leftJoin('consent_state as s', (on) =>
      on.on('s.kid', 'o.kid').on('s.principal', 'o.principal').on('s.purpose', 'o.purpose'),
    )
    .where('o.kid', kid)
    .whereBetween('o.seq', [first, last])
    .select('o.seq', 'o.principal', 'o.purpose', 'o.choice', 'o.at', 'o.salt', 'o.detail', 'p.wrapped_key')
    .select({ state_seq: 's.seq', doubt_seq: 's.doubt_seq' });
}

function opens({ kid, wrapKey }: PeopleCheck, row: CheckedCommitment, body: unknown): boolean {
  if (row.wrapped_key === null) return false;
  if (wrapKey === null) return true;
  try {
    const context = principalKeyContext(kid, row.principal);
    return opensBody(createMasterKey(wrapKey, randomBytes).unwrap(row.wrapped_key, context), row, body);
  } catch {
    return false;
  }
}

/**
 * Checks one page of entries with their openings.
 * @returns the entries about people after the last erasure whose opening is missing
 */
export async function checkOpenings(
  check: PeopleCheck,
  page: readonly StoredEntry[],
  unopened: number | null,
  /** The purposes of all definitions until the end of the page. */
  { definitions }: Pick<Fold, 'definitions'>,
): Promise<number | null> {
  const { database, kid, problems } = check;
  const [first, last] = [page[0]?.seq ?? 0, page.at(-1)?.seq ?? 0];
  const rows = await database.snapshot(
    async (tx) => (await openingsOf(tx, kid, first, last)) as readonly CheckedCommitment[],
  );
  const bySeq = new Map(rows.map((row) => [Number(row.seq), row]));
  let missing = unopened;
  for (const { seq, entry } of page) {
    const stored = parseStored(entry);
    const row = bySeq.get(seq);
    if (stored.type === 'subject.erased') missing = null;
    if (!row && ABOUT_PEOPLE.test(String(stored.type))) missing ??= seq;
    if (!row) continue;
    const { definition } = JSON.parse(row.detail) as Partial<EntryDetail>;
    const isDefined = definition === undefined || definitions.get(definition) === row.purpose;
    if (!isDefined || !saysSame(stored, row) || !opens(check, row, stored.body))
      problems.add('opening-changed', `the opening of entry ${seq} does not match the entry`, seq);
    else if (row.choice === 'linked') continue;
    else if (row.state_seq === null || Math.max(Number(row.state_seq), Number(row.doubt_seq)) < seq)
      problems.add('state-changed', `the person’s state does not include entry ${seq}`, seq);
  }
  return missing;
}

/** Columns of the opening, of the entry (`leaf`), and of the opening of the doubt. */
type Joined = 'opening' | 'owner' | 'about' | 'was' | 'leaf' | 'doubt' | 'doubter' | 'doubted';

interface StateRow extends StateColumns, Readonly<Record<Joined, string | null>> {
  readonly principal: string;
  readonly purpose: string;
  readonly told_at: number | null;
}

/** Checks the giver of a grant against the log, which has an entry for a person only if a review made one. */
function isGivenAsSaid(row: StateRow, source: string): boolean {
  const { given, seq, doubtSeq } = toStateRow(row);
  if (doubtSeq === null) return given === 'agent' ? source.startsWith('agent:') : given !== 'automation';
  const by = row.doubt === null ? null : (JSON.parse(row.doubt) as DoubtDetail).class;
  const isOwnDoubt = row.doubter === row.principal && row.doubted === row.purpose && doubtSeq > seq;
  return isOwnDoubt && by !== null && GIVEN_BY[by] === given;
}

function isSaid(row: StateRow): boolean {
  if (row.opening === null || row.leaf !== row.hash) return false;
  const {
    policyVersion,
    expiresAt,
    source,
    overGpc = false,
    definition = null,
  } = JSON.parse(row.opening) as EntryDetail;
  const state = toStateRow(row);
  return (
    row.owner === row.principal &&
    row.about === row.purpose &&
    row.was === state.choice &&
    Number(row.told_at) === state.at &&
    policyVersion === state.policyVersion &&
    overGpc === state.overGpc &&
    definition === state.definition &&
    // The row of a writer of the database may have a number that is no time.
    (expiresAt && Date.parse(expiresAt)) === state.expiresAt &&
    isGivenAsSaid(row, source)
  );
}

/**
 * Checks the state that answers consent checks against the opening it names; the openings show whether that
 * one is the last.
 */
export async function checkState({ database, kid, problems }: PeopleCheck): Promise<void> {
  const query = database
    .read('consent_state as s')
    .leftJoin('consent_openings as o', (on) => on.on('o.kid', 's.kid').on('o.seq', 's.seq'))
    .leftJoin('consent_openings as d', (on) =>
      on.on('d.kid', 's.kid').on('d.seq', 's.doubt_seq').onVal('d.choice', 'doubted'),
    )
    .leftJoin('ledger_entries as e', (on) => on.on('e.kid', 's.kid').on('e.seq', 's.seq'))
    .where('s.kid', kid)
    .select('s.*', { opening: 'o.detail', owner: 'o.principal', about: 'o.purpose', was: 'o.choice' })
    .select({
      told_at: 'o.at',
      leaf: 'e.hash',
      doubt: 'd.detail',
      doubter: 'd.principal',
      doubted: 'd.purpose',
    });
  for await (const rows of pagesOf<StateRow>(query, ['s.principal', 's.purpose'], PAGE))
    for (const row of rows)
      if (!isSaid(row))
        problems.add('state-changed', `a state differs from entry ${row.seq}`, Number(row.seq));
}

interface PrincipalRow extends PrincipalColumns {
  readonly principal: string;
  readonly wrapped_key: string | null;
  /** Choice of the last opening. */
  readonly detail: string | null;
  readonly purpose: string | null;
  readonly seq: number | null;
  readonly granted: number | null;
}

function principalProblem({ wrapped_key: key, erased_at: erased, ...row }: PrincipalRow): string | null {
  if (key === null) {
    if (row.seq !== null) return 'a principal without a key has openings';
    return erased === null ? 'a principal lost its key without an erasure' : null;
  }
  if (row.detail === null) return null;
  if (erased !== null && row.granted !== null) return 'a principal is marked as erased and has granted since';
  const { gpc } = JSON.parse(row.detail) as EntryDetail;
  // A grant of one that is joined with this principal may have ended the opt-out since.
  const isRecorded =
    row.account === null ? isOptedOut(isTrue(row.gpc), row.gpc_except, row.purpose ?? '') : isTrue(row.gpc);
  if (gpc && !isRecorded) return 'the GPC signal of the last entry is not recorded';
  return null;
}

const LAST_OPENING = `SELECT o.seq FROM consent_openings o WHERE o.kid = p.kid AND o.principal = p.principal AND o.choice NOT IN ('doubted', 'linked') ORDER BY o.seq DESC LIMIT 1`;
const GRANTED = `SELECT 1 FROM consent_state g WHERE g.kid = p.kid AND g.principal = p.principal AND g.choice = 'granted' LIMIT 1`;

export async function checkPrincipals({ database, kid, problems }: PeopleCheck): Promise<void> {
  const { read } = database;
  const query = read('consent_principals as p')
    .leftJoin('consent_openings as l', (on) =>
      on.on('l.kid', 'p.kid').andOn('l.seq', read.raw(`(${LAST_OPENING})`)),
    )
    .where('p.kid', kid)
    .select('p.principal', 'p.wrapped_key', 'p.gpc', 'p.gpc_except', 'p.erased_at', 'p.account', 'p.withheld')
    .select('l.detail', 'l.purpose', 'l.seq')
    .select({ granted: read.raw(`(${GRANTED})`) });
  for await (const rows of pagesOf<PrincipalRow>(query, ['p.principal'], PAGE))
    for (const row of rows) {
      const problem = principalProblem(row);
      if (problem !== null)
        problems.add('state-changed', problem, row.seq === null ? undefined : Number(row.seq));
    }
}

/** Finds openings beyond the end of the log, to which no entry commits. */
export async function checkStrayOpenings({ database, kid, problems }: PeopleCheck): Promise<void> {
  const stray = await database.snapshot((tx) => {
    const openings = tx('consent_openings as o').join('ledger_heads as h', 'h.kid', 'o.kid');
    return cellOf<number>(openings.where('o.kid', kid).whereRaw('o.seq >= h.size'), 'o.seq');
  });
  if (stray !== undefined) problems.add('opening-changed', 'an opening belongs to no entry', Number(stray));
}

/** True if anybody was erased since: then it is unknown whose opening is missing. */
export async function erasedSince({ database, kid }: PeopleCheck, seq: number): Promise<boolean> {
  const entries = await textsSince(database.read, kid, seq);
  return entries.some((entry) => parseStored(entry).type === 'subject.erased');
}
