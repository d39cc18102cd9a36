import type { Reader } from '../db/engine.ts';
import { ConsentStateInvalid } from '../db/meta-store.ts';
import { whereAmong } from '../db/sql.ts';
import { principalKeyContext } from '../keys/master-key.ts';
import { commitBody, type DoubtDetail, type EntryDetail, entryTime } from '../ledger/entries.ts';
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

/**
 * Leaves out the rows of a principal without a key, who was erased meanwhile.
 * @throws {ConsentStateInvalid} when an entry does not commit to its row: somebody wrote it without gpd's key
 */
export async function requireOpenings<Row extends CommitmentRow>(
  { read }: Reader,
  { kid, wrapper }: OpenedBy,
  rows: readonly Row[],
): Promise<Row[]> {
  if (rows.length === 0) return [];
  const among = (table: string, column: string, keys: readonly (string | number)[]) =>
    whereAmong(read(table).where({ kid }), read, column, [...new Set(keys)]);
  const [entries, principals] = await Promise.all([
    among(
      'ledger_entries',
      'seq',
      rows.map(({ seq }) => Number(seq)),
    ).select('seq', 'entry') as PromiseLike<readonly { readonly seq: number; readonly entry: string }[]>,
    among(
      'consent_principals',
      'principal',
      rows.map(({ principal }) => principal),
    )
      .whereNotNull('wrapped_key')
      .select('principal', 'wrapped_key') as PromiseLike<
      readonly { readonly principal: string; readonly wrapped_key: string }[]
    >,
  ]);
  const stored = new Map(entries.map(({ seq, entry }) => [Number(seq), entry]));
  const wrappedKeys = new Map(principals.map((one) => [one.principal, one.wrapped_key]));
  return rows.filter((row) => {
    const wrapped = wrappedKeys.get(row.principal);
    if (wrapped === undefined) return false;
    const entry = parseStored(stored.get(Number(row.seq)) ?? '');
    if (!openingKey({ kid, wrapper }, row, wrapped, entry)) throw new ConsentStateInvalid(kid);
    return true;
  });
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
  const query = database
    .read<CommitmentRow>('consent_openings')
    .where({ kid: tenant.kid })
    .whereIn('principal', principals)
    .whereNot('choice', 'linked');
  if (page.before !== null) query.where('seq', '<', page.before);
  const rows = await query.orderBy('seq', 'desc').limit(page.limit);
  const opened = await requireOpenings(database, tenant, rows as CommitmentRow[]);
  return (opened as (CommitmentRow & { readonly choice: ConsentChoice | 'doubted' })[]).map((row) =>
    rowToEvent(row),
  );
}

/**
 * Reads the opening of one entry with its principal; null: the entry is not personal, or was erased.
 * @throws {ConsentStateInvalid} for a forged row
 */
export async function findOpening(database: Reader, tenant: OpenedBy, seq: number) {
  const row = await database.read<CommitmentRow>('consent_openings').where({ kid: tenant.kid, seq }).first();
  const [opened] = await requireOpenings(database, tenant, row ? [row as CommitmentRow] : []);
  return opened ? rowToEvent(opened) : null;
}
