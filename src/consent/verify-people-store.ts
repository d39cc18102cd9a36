import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { cellOf, isTrue, pagesOf } from '../db/sql.ts';
import { createMasterKey, type MasterKey } from '../keys/master-key.ts';
import type { DoubtDetail, EntryDetail } from '../ledger/entries.ts';
import { tryOr } from '../lib/errors.ts';
import { type StoredEntry, textsSince } from '../log/entries-store.ts';
import { type Entry, type Fold, parseStored } from '../log/fold.ts';
import type { Problems } from '../log/problems.ts';
import type { StateRow } from '../tenants/state-mac.ts';
import { GIVEN_BY } from './decide.ts';
import { type CommitmentRow, openingKey, saysSame } from './openings-store.ts';
import { isOptedOut, type PrincipalColumns, type StateColumns, toStateRow } from './state-store.ts';

/**
 * Compares openings with the commitments of their entries, then the rows that checks read with the last
 * opening of each principal and purpose. Each page is read from one snapshot, so that a write, an erasure or
 * a removal meanwhile does not look like tampering.
 */

const PAGE = 1000;

export interface PeopleCheck {
  readonly database: Database;
  readonly kid: string;
  /** The tenant's key that wraps its principals' keys; null to leave commitments unopened. */
  readonly wrapKey: Uint8Array | null;
  readonly problems: Problems;
}

/** An entry that was hashed again and is the one in the tree. */
export interface ParsedEntry extends Pick<StoredEntry, 'seq' | 'hash'> {
  readonly entry: Entry;
}

/** An opening, with the state of its principal and purpose, and the opening of a doubt about that. */
interface OpeningRow extends Pick<CommitmentRow, 'principal' | 'purpose' | 'salt' | 'detail'> {
  readonly opening: number;
  readonly was: CommitmentRow['choice'];
  readonly told_at: number;
  readonly wrapped_key: string | null;
  /** Null: there is no state. */
  readonly seq: number | null;
  readonly doubt_seq: number | null;
  readonly doubt: string | null;
  readonly doubter: string | null;
  readonly doubted: string | null;
}

function openingsOf(tx: Knex, kid: string, first: number, last: number): Knex.QueryBuilder {
  return tx('consent_openings as o')
    .leftJoin('consent_principals as p', (on) => on.on('p.kid', 'o.kid').on('p.principal', 'o.principal'))
    .leftJoin('consent_state as s', (on) =>
      on.on('s.kid', 'o.kid').on('s.principal', 'o.principal').on('s.purpose', 'o.purpose'),
    )
    .leftJoin('consent_openings as d', (on) =>
      on.on('d.kid', 's.kid').on('d.seq', 's.doubt_seq').onVal('d.choice', 'doubted'),
    )
    .where('o.kid', kid)
    .whereBetween('o.seq', [first, last])
    .select('o.principal', 'o.purpose', 'o.salt', 'o.detail', 'p.wrapped_key')
    .select({ opening: 'o.seq', was: 'o.choice', told_at: 'o.at' })
    .select('s.choice', 's.policy_version', 's.expires_at', 's.at', 's.seq', 's.hash', 's.over_gpc')
    .select('s.given', 's.doubt_seq', 's.definition')
    .select({ doubt: 'd.detail', doubter: 'd.principal', doubted: 'd.purpose' });
}

/** Somebody without gpd's key may have written a text of any form. */
const readDetail = (text: string): EntryDetail | null =>
  tryOr(() => JSON.parse(text) as EntryDetail | null, null);

/** @param wrapper of the tenant; null to leave commitments unopened */
function opens(kid: string, wrapper: MasterKey | null, row: OpeningRow, entry: Entry): boolean {
  const { purpose, was: choice, told_at: at, wrapped_key: wrapped } = row;
  if (wrapped === null) return false;
  const opening = { ...row, purpose, choice, at };
  return wrapper ? openingKey({ kid, wrapper }, opening, wrapped, entry) !== null : saysSame(entry, opening);
}

/**
 * Checks one page of entries with their openings, and the states that name these openings.
 * @returns the entries about people after the last erasure whose opening is missing
 */
export async function checkOpenings(
  { database, kid, wrapKey, problems }: PeopleCheck,
  page: readonly ParsedEntry[],
  unopened: number | null,
  /** The purposes of all definitions until the end of the page. */
  { definitions }: Pick<Fold, 'definitions'>,
): Promise<number | null> {
  const [first, last] = [page[0]?.seq ?? 0, page.at(-1)?.seq ?? 0];
  const rows = await database.snapshot(
    async (tx) => (await openingsOf(tx, kid, first, last)) as readonly OpeningRow[],
  );
  const wrapper = wrapKey && createMasterKey(wrapKey, randomBytes);
  const bySeq = new Map(rows.map((row) => [Number(row.opening), row]));
  let missing = unopened;
  for (const { seq, hash, entry } of page) {
    const row = bySeq.get(seq);
    if (entry.type === 'subject.erased') missing = null;
    if (!row && String(entry.type).startsWith('consent.')) missing ??= seq;
    if (!row) continue;
    const { purpose } = row;
    const detail = readDetail(row.detail);
    const definition = detail?.definition;
    const isDefined = definition === undefined || definitions.get(definition) === purpose;
    if (detail === null || !isDefined || !opens(kid, wrapper, row, entry))
      problems.add('opening-changed', `the opening of entry ${seq} does not match the entry`, seq);
    else if (row.was !== 'linked' && Math.max(Number(row.seq ?? -1), Number(row.doubt_seq)) < seq)
      problems.add('state-changed', `the person’s state does not include entry ${seq}`, seq);
    if (row.seq !== null && Number(row.seq) === seq && !(detail && isSaid(row, hash, detail)))
      problems.add('state-changed', `a state differs from entry ${seq}`, seq);
  }
  return missing;
}

/** Checks the giver of a grant against the log, which has an entry for a person only if a review made one. */
function isGivenAsSaid({ given, seq, doubtSeq }: StateRow, row: OpeningRow, source: string): boolean {
  if (doubtSeq === null) return given === 'agent' ? source.startsWith('agent:') : given !== 'automation';
  const by = tryOr(() => (JSON.parse(row.doubt ?? '') as DoubtDetail).class, null);
  const isOwnDoubt = row.doubter === row.principal && row.doubted === row.purpose && doubtSeq > seq;
  return isOwnDoubt && by !== null && GIVEN_BY[by] === given;
}

/** Compares a state that answers consent checks with the opening that it names. */
function isSaid(row: OpeningRow, hash: string, detail: EntryDetail): boolean {
  const { policyVersion, expiresAt, source, overGpc = false, definition = null } = detail;
  const state = toStateRow(row as unknown as StateColumns);
  return (
    state.hash === hash &&
    row.was === state.choice &&
    Number(row.told_at) === state.at &&
    policyVersion === state.policyVersion &&
    overGpc === state.overGpc &&
    definition === state.definition &&
    // The row of a writer of the database may have a number that is no time.
    (expiresAt && Date.parse(expiresAt)) === state.expiresAt &&
    isGivenAsSaid(state, row, source)
  );
}

/** Finds states that name no opening of their principal and purpose; `checkOpenings` compares the others. */
export async function checkStrayStates({ database, kid, problems }: PeopleCheck): Promise<void> {
  const query = database
    .read('consent_state as s')
    .leftJoin('consent_openings as o', (on) =>
      on
        .on('o.kid', 's.kid')
        .on('o.seq', 's.seq')
        .on('o.principal', 's.principal')
        .on('o.purpose', 's.purpose'),
    )
    .where('s.kid', kid)
    .select('s.principal', 's.purpose', 's.seq', { opening: 'o.seq' });
  type Row = Readonly<Record<'principal' | 'purpose', string> & { seq: number; opening: number | null }>;
  for await (const rows of pagesOf<Row>(query, ['s.principal', 's.purpose'], PAGE))
    for (const { seq, opening } of rows)
      if (opening === null) problems.add('state-changed', `a state differs from entry ${seq}`, Number(seq));
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
  const gpc = readDetail(row.detail)?.gpc === true;
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
