import type { Knex } from 'knex';
import type { Reader } from '../db/engine.ts';
import { ConsentStateInvalid } from '../db/meta-store.ts';
import { principalKeyContext } from '../keys/master-key.ts';
import { commitBody, type DoubtDetail, type EntryDetail, entryTime } from '../ledger/entries.ts';
import { leafHash } from '../ledger/merkle.ts';
import { tryOr } from '../lib/errors.ts';
import { type Entry, parseStored } from '../log/fold.ts';
import type { ConsentChoice } from '../schema/consent.ts';
import type { Tenant } from '../tenants/tenant.ts';

/**
 * Reads what opens the entries of persons. An opening carries no MAC: it counts only if its entry commits to
 * it.
 */

export interface CommitmentRow {
  readonly kid: string;
  readonly seq: number;
  readonly principal: string;
  readonly purpose: string;
  readonly choice: ConsentChoice | 'doubted' | 'linked';
  readonly at: number;
  readonly salt: string;
  readonly detail: string;
}

export type OpenedBy = Pick<Tenant, 'kid' | 'wrapper'>;

/** True if the entry says the same; the commitment is not looked at. */
export function saysSame(
  { type, purpose, time }: Entry,
  row: Pick<CommitmentRow, 'choice' | 'purpose' | 'at'>,
): boolean {
  if (row.choice === 'linked') return type === 'subject.linked' && purpose === null;
  // Somebody without gpd's key may have written a number that is no time.
  const at = tryOr(() => entryTime(Number(row.at)), null);
  return type === `consent.${row.choice}` && purpose === row.purpose && time === at;
}

/** @returns the key of the principal if the entry says the same and commits to the row; else null */
export function openingKey(
  { kid, wrapper }: OpenedBy,
  row: Omit<CommitmentRow, 'kid' | 'seq'>,
  wrappedKey: string,
  entry: Entry,
): Buffer | null {
  if (!saysSame(entry, row)) return null;
  return tryOr(() => {
    const key = wrapper.unwrap(wrappedKey, principalKeyContext(kid, row.principal));
    const detail = JSON.parse(row.detail) as EntryDetail | DoubtDetail;
    const body = commitBody({ key, salt: Buffer.from(row.salt, 'base64url'), detail });
    return body === entry.body ? key : null;
  }, null);
}

/** An entry of the log as it is stored; null if it is missing. */
interface StoredText {
  readonly entry: string | null;
  readonly hash: string | null;
}

export interface ProvenRow extends CommitmentRow, StoredText {
  readonly wrapped_key: string;
}

/** Empty unless the log has hashed this text: a commitment leaves out what an entry says openly. */
export const parseHashed = ({ entry, hash }: StoredText): Entry =>
  entry !== null && leafHash(Buffer.from(entry)).toString('hex') === hash ? parseStored(entry) : {};

/**
 * Joins openings with their entries and with the keys of persons who are not erased, in one statement:
 * between two a person could be erased and come back with another key.
 * @param openings the name of `consent_openings` in the query
 */
export const withProof = (query: Knex.QueryBuilder, openings: string): Knex.QueryBuilder =>
  query
    .join('consent_principals as p', (on) =>
      on.on('p.kid', `${openings}.kid`).on('p.principal', `${openings}.principal`),
    )
    .leftJoin('ledger_entries as e', (on) => on.on('e.kid', `${openings}.kid`).on('e.seq', `${openings}.seq`))
    .whereNotNull('p.wrapped_key')
    .select(`${openings}.*`, 'e.entry', 'e.hash', 'p.wrapped_key');

/**
 * Reads a query of `withProof`.
 * @throws {ConsentStateInvalid} when an entry does not commit to its row: somebody wrote it without gpd's key
 */
export async function readOpenings<Row extends ProvenRow>(
  query: Knex.QueryBuilder,
  tenant: OpenedBy,
): Promise<readonly Row[]> {
  const rows = (await query) as readonly Row[];
  for (const row of rows)
    if (!openingKey(tenant, row, row.wrapped_key, parseHashed(row)))
      throw new ConsentStateInvalid(tenant.kid);
  return rows;
}

function rowToEvent<Choice>({
  principal,
  purpose,
  choice,
  at,
  salt,
  ...row
}: Omit<CommitmentRow, 'choice'> & { readonly choice: Choice }) {
  // A doubt has no policy and does not expire.
  const emptyDetail = { policyVersion: null, gpc: false, expiresAt: null };
  const detail = { ...emptyDetail, ...(JSON.parse(row.detail) as EntryDetail) };
  return { seq: Number(row.seq), principal, purpose, choice, at, salt, detail };
}

/**
 * Choices and doubts of these principals, newest first, before `cursor`.
 * @throws {ConsentStateInvalid} for a forged row
 */
export async function listHistory(
  database: Reader,
  tenant: OpenedBy,
  principals: readonly string[],
  page: { readonly before: number | null; readonly limit: number },
) {
  const query = withProof(database.read('consent_openings as o'), 'o')
    .where('o.kid', tenant.kid)
    .whereIn('o.principal', principals)
    .whereNot('o.choice', 'linked');
  if (page.before !== null) query.where('o.seq', '<', page.before);
  const found = query.orderBy('o.seq', 'desc').limit(page.limit);
  type Row = ProvenRow & { readonly choice: ConsentChoice | 'doubted' };
  return (await readOpenings<Row>(found, tenant)).map((row) => rowToEvent(row));
}

/**
 * Reads the opening of one entry with its principal; null: the entry is not personal, or was erased.
 * @throws {ConsentStateInvalid} for a forged row
 */
export async function findOpening(database: Reader, tenant: OpenedBy, seq: number) {
  const found = withProof(database.read('consent_openings as o'), 'o').where({
    'o.kid': tenant.kid,
    'o.seq': seq,
  });
  const [opened] = await readOpenings(found, tenant);
  return opened ? rowToEvent(opened) : null;
}
