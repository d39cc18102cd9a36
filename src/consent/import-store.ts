import type { Knex } from 'knex';
import { reportInvalidState } from '../db/meta-store.ts';
import { type Bindings, joinRow, joinRows, runAsked } from '../db/sql.ts';
import type { EntryDetail } from '../ledger/entries.ts';
import type { AppendRequest } from './plan-write.ts';
import { MEMBER, type MemberRow, readChoice } from './state-store.ts';

/**
 * Compares records of another system with the stored choices: an old record replaces nothing newer, and
 * importing a file twice adds nothing.
 */

/** The last choice of a person about a purpose. */
interface LastChoice {
  /** Epoch milliseconds. For an imported record the time when it was made, 0 if that is unknown. */
  readonly at: number;
  readonly isGrant: boolean;
  /** Choices until this time were erased. `NEVER`: none; Infinity: the person has granted nothing since. */
  readonly erasedUntil: number;
}

/** Before 0, the time of a record without a date. */
const NEVER = Number.NEGATIVE_INFINITY;

/** The key is person and purpose. */
export type LastChoices = Map<string, LastChoice>;

type Compared = Pick<AppendRequest, 'principal' | 'isGrant' | 'now' | 'imported' | 'stateMac'> & {
  readonly entries: readonly { readonly purpose: string }[];
};

const keyOf = (principal: string, purpose: string): string => `${principal}|${purpose}`;

const COLUMNS = { principal: 'text', purpose: 'text' } as const;

const choicesSql = (
  db: Knex,
): string => `SELECT q.principal AS asked_for, q.purpose AS purpose, p.erased_at AS tombstone, ${MEMBER},
    o.at AS told_at, o.detail AS detail,
    (SELECT MAX(e.erased_at) FROM erasure_refs r JOIN erasures e ON e.receipt_id = r.receipt
      WHERE r.kid = ? AND r.kind = 'principal' AND r.ref = q.principal) AS last_erased
  FROM q ${joinRow(db, 'consent_principals', 'p', 'p.kid = ? AND p.principal = q.principal')}
  ${joinRows(db, 'consent_principals', 'm', 'consent_principals_account', 'm.kid = ? AND m.account = p.account')}
  ${joinRow(db, 'consent_state', 's', 's.kid = ? AND s.principal = COALESCE(m.principal, q.principal) AND s.purpose = q.purpose')}
  ${joinRow(db, 'consent_openings', 'o', 'o.kid = ? AND o.seq = s.seq')}
  WHERE p.principal IS NOT NULL`;

interface ChoiceRow extends MemberRow {
  readonly asked_for: string;
  readonly purpose: string;
  /** A new grant ends it. */
  readonly tombstone: number | null;
  /** The last receipt of an erasure of the person. */
  readonly last_erased: number | null;
  readonly told_at: number | null;
  readonly detail: string | null;
}

/** Nobody knows what the row hides: no record is newer, or the import would write a valid row over it. */
const FORGED: LastChoice = { at: Number.POSITIVE_INFINITY, isGrant: false, erasedUntil: NEVER };

function timeOf(at: unknown, detail: unknown): number {
  // Its opening was deleted, so no record counts as newer.
  if (at === null) return Number.POSITIVE_INFINITY;
  const { source, recordedAt } = JSON.parse(String(detail)) as EntryDetail;
  if (source !== 'import') return Number(at);
  return recordedAt === undefined ? 0 : Date.parse(recordedAt);
}

/** Reads the last choices that the imported records among these requests are compared with. */
export async function loadLastChoices(
  db: Knex,
  kid: string,
  requests: readonly Compared[],
): Promise<LastChoices> {
  const rows = requests.flatMap(({ imported, principal, entries }): Bindings[] =>
    imported ? entries.map(({ purpose }): Bindings => [principal, purpose]) : [],
  );
  const lookup = { columns: COLUMNS, rows, sql: choicesSql(db) };
  const last: LastChoices = new Map();
  const [mac] = requests.map(({ stateMac }) => stateMac);
  if (mac === undefined) return last;
  for (const row of await runAsked<ChoiceRow>(db, lookup, kid, kid, kid, kid, kid)) {
    const { asked_for, purpose, tombstone, last_erased, told_at, detail } = row;
    const key = keyOf(asked_for, purpose);
    const choice = readChoice(row, { purpose, mac });
    if (choice === undefined) {
      reportInvalidState(kid);
      last.set(key, FORGED);
      continue;
    }
    const erasedUntil = tombstone === null ? Number(last_erased ?? NEVER) : Number.POSITIVE_INFINITY;
    if (choice === null && erasedUntil === NEVER) continue;
    const chosenAt = choice === null ? erasedUntil : timeOf(told_at, detail);
    const [known, isGrant] = [last.get(key), choice?.choice === 'granted'];
    // The newest choice of all that are joined counts, and the refusal of two at one time.
    if (!known || chosenAt > known.at || (chosenAt === known.at && !isGrant))
      last.set(key, { at: chosenAt, isGrant, erasedUntil });
  }
  return last;
}

/**
 * Call it for one request after the other; an accepted one is the last choice for the next. Of two choices
 * with the same time the refusal counts.
 * @returns null if the record is accepted
 */
export function refuseRecord(
  last: LastChoices,
  { principal, entries, isGrant, now, imported }: Compared,
): 'erased' | 'outdated' | null {
  const at = imported ? (imported.recordedAt ?? 0) : now;
  for (const { purpose } of entries) {
    const key = keyOf(principal, purpose);
    const known = last.get(key);
    if (imported && known) {
      if (at <= known.erasedUntil) return 'erased';
      const isNews = at > known.at || (at === known.at && known.isGrant && !isGrant);
      if (!isNews) return 'outdated';
    }
    const { erasedUntil = NEVER } = known ?? {};
    last.set(key, { at, isGrant, erasedUntil: isGrant ? Math.min(erasedUntil, at) : erasedUntil });
  }
  return null;
}

/**
 * Refuses the imported records among these requests that are not new.
 * @returns the requests that remain, in their order
 */
export async function refuseRecords<Request extends Compared>(
  db: Knex,
  kid: string,
  requests: readonly Request[],
  outcomes: Map<Request, unknown>,
): Promise<Request[]> {
  if (!requests.some(({ imported }) => imported)) return [...requests];
  const last = await loadLastChoices(db, kid, requests);
  return requests.filter((request) => {
    const refused = refuseRecord(last, request);
    if (refused !== null) outcomes.set(request, refused);
    return refused === null;
  });
}
