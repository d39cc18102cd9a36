import { randomBytes } from 'node:crypto';
import { ItemFault } from '../db/group-commit.ts';
import { reportInvalidState } from '../db/meta-store.ts';
import {
  type Bindings,
  byIndex,
  insertMany,
  joinRow,
  runAsked,
  runSql,
  type Transaction,
} from '../db/sql.ts';
import { type MasterKey, principalKeyContext } from '../keys/master-key.ts';
import { isMacValid, type PrincipalRow, type StateMac } from '../tenants/state-mac.ts';
import type { AppendRequest } from './plan-write.ts';
import { type PrincipalColumns, parsePurposes, toPrincipalRow } from './state-store.ts';

/**
 * Principals: their keys, what is known of GPC and of the tombstone, and with whom they are joined
 * (contract-2 section 20).
 */

type Batch = readonly AppendRequest[];

const KEY_BYTES = 32;

export interface Principal {
  readonly wrappedKey: string;
  readonly key: Buffer;
  /** A GPC signal was recorded: it opts out of every purpose but `gpcExcept`. */
  gpc: boolean;
  /** Granted by a write that said that there is no signal, since the last signal. */
  gpcExcept: ReadonlySet<string>;
  erasedAt: number | null;
  readonly account: string | null;
  /** Refused by a principal that was joined with this one, until a grant. */
  withheld: ReadonlySet<string>;
  /** The row is forged, and was perhaps joined: a valid one would let the refusals of others lapse. */
  readonly keepsRow: boolean;
}

const NEW_PRINCIPAL: PrincipalRow = {
  gpc: false,
  except: null,
  erasedAt: null,
  account: null,
  withheld: null,
};
const NEW_ROW = { ...NEW_PRINCIPAL, keepsRow: false };
/**
 * The signal is taken as given: a write must not make a forged row believed, and a withdrawal has to go
 * through.
 */
const FORGED: PrincipalRow = { ...NEW_PRINCIPAL, gpc: true };

interface StoredPrincipal extends PrincipalColumns {
  readonly principal: string;
  readonly wrapped_key: string | null;
  readonly mac: string | null;
}

/** The rows of the principals of a batch, by principal. */
export async function loadPrincipals(tx: Transaction, kid: string, batch: Batch) {
  const refs = new Set(batch.map((request) => request.principal));
  const sql = `SELECT p.principal AS principal, p.wrapped_key AS wrapped_key, p.gpc AS gpc, p.gpc_except AS gpc_except,
      p.erased_at AS erased_at, p.account AS account, p.withheld AS withheld, p.mac AS mac
    FROM q ${joinRow(tx, 'consent_principals', 'p', 'p.kid = ? AND p.principal = q.principal')} WHERE p.principal IS NOT NULL`;
  const question = {
    columns: { principal: 'text' },
    rows: [...refs].map((ref): Bindings => [ref]),
    sql,
  } as const;
  const principalRows = await runAsked<StoredPrincipal>(tx, question, kid);
  return new Map(principalRows.map((row) => [row.principal, row]));
}

function readRow(kid: string, stateMac: StateMac, stored: StoredPrincipal) {
  const row = toPrincipalRow(stored);
  if (isMacValid(stored.mac, stateMac.ofPrincipal(stored.principal, row))) return { ...row, keepsRow: false };
  reportInvalidState(kid);
  return { ...FORGED, keepsRow: row.account !== null };
}

const toPrincipal = (row: ReturnType<typeof readRow>, wrappedKey: string, key: Buffer): Principal => ({
  wrappedKey,
  key,
  gpc: row.gpc,
  gpcExcept: new Set(parsePurposes(row.except)),
  erasedAt: row.erasedAt,
  account: row.account,
  withheld: new Set(parsePurposes(row.withheld)),
  keepsRow: row.keepsRow,
});

const NO_KEY = Buffer.alloc(0);

/**
 * The principals that are joined with those of grants, by reference: what a signal or a refusal denied there
 * ends with a new grant here.
 */
export async function loadJoined(
  tx: Transaction,
  kid: string,
  batch: Batch,
  principals: ReadonlyMap<string, Principal | ItemFault>,
): Promise<Map<string, Principal>> {
  const found = new Map<string, Principal>();
  for (const { principal: ref, isGrant, stateMac } of batch) {
    const principal = principals.get(ref);
    if (!isGrant || principal === undefined || principal instanceof ItemFault || principal.account === null)
      continue;
    const table = byIndex(tx, 'consent_principals', 'consent_principals_account');
    const sql = `SELECT principal, wrapped_key, gpc, gpc_except, erased_at, account, withheld, mac FROM ${table}
      WHERE kid = ? AND account = ?`;
    for (const stored of await runSql<StoredPrincipal>(tx, sql, [kid, principal.account]))
      if (!principals.has(stored.principal) && stored.wrapped_key !== null)
        found.set(stored.principal, toPrincipal(readRow(kid, stateMac, stored), stored.wrapped_key, NO_KEY));
  }
  return found;
}

/** @returns the principals that are joined with this one */
export const joinedWith = (
  principal: Principal,
  ...maps: readonly ReadonlyMap<string, Principal | ItemFault>[]
): readonly Principal[] =>
  principal.account === null
    ? []
    : maps
        .flatMap((map) => [...map.values()])
        .filter(
          (one): one is Principal =>
            !(one instanceof ItemFault) && one !== principal && one.account === principal.account,
        );

/** A row that cannot be opened fails its own principal and no other. */
export function openPrincipals(
  rows: ReadonlyMap<string, StoredPrincipal>,
  kid: string,
  batch: Batch,
  wrapper: MasterKey,
): Map<string, Principal | ItemFault> {
  const principals = new Map<string, Principal | ItemFault>();
  for (const { principal: ref, stateMac } of batch) {
    if (principals.has(ref)) continue;
    try {
      const stored = rows.get(ref);
      const row = stored ? readRow(kid, stateMac, stored) : NEW_ROW;
      const context = principalKeyContext(kid, ref);
      const wrapped = stored?.wrapped_key ?? null;
      const key = wrapped === null ? randomBytes(KEY_BYTES) : wrapper.unwrap(wrapped, context);
      const wrappedKey = wrapped ?? wrapper.wrap(key, context);
      principals.set(ref, toPrincipal(row, wrappedKey, key));
    } catch (error) {
      principals.set(ref, new ItemFault(error));
    }
  }
  return principals;
}

/** Applies a write to the principal's GPC state and tombstone (contract-2 section 13). */
export function applyToPrincipal(principal: Principal, { gpc, isGrant, entries }: AppendRequest): void {
  if (gpc === true) {
    principal.gpc = true;
    principal.gpcExcept = new Set();
  }
  if (!isGrant) return;
  principal.erasedAt = null;
  applyGrant(principal, { gpc, entries });
}

/**
 * A grant ends what was refused for another, and with the word that there is no signal the opt-out, for its
 * purposes.
 */
export function applyGrant(
  principal: Principal,
  { gpc, entries }: Pick<AppendRequest, 'gpc' | 'entries'>,
): void {
  const granted = entries.map(({ purpose }) => purpose);
  if (gpc === false && principal.gpc) principal.gpcExcept = new Set([...principal.gpcExcept, ...granted]);
  if (principal.withheld.size > 0)
    principal.withheld = new Set([...principal.withheld].filter((purpose) => !granted.includes(purpose)));
}

/** A list of purposes, as a column has it. */
const toColumn = (purposes: ReadonlySet<string>): string | null =>
  purposes.size === 0 ? null : JSON.stringify([...purposes].sort());

export async function savePrincipals(
  tx: Transaction,
  kid: string,
  principals: ReadonlyMap<string, Principal | ItemFault>,
  mac: StateMac,
): Promise<void> {
  const rows = [...principals].flatMap(([ref, principal]): Bindings[] => {
    if (principal instanceof ItemFault || principal.keepsRow) return [];
    const { wrappedKey, gpc, erasedAt, account } = principal;
    const [except, withheld] = [toColumn(principal.gpcExcept), toColumn(principal.withheld)];
    const row = { gpc, except, erasedAt, account, withheld };
    return [[kid, ref, wrappedKey, gpc, except, erasedAt, account, withheld, mac.ofPrincipal(ref, row)]];
  });
  await insertMany(
    tx,
    'INSERT INTO consent_principals (kid, principal, wrapped_key, gpc, gpc_except, erased_at, account, withheld, mac)',
    rows,
    `ON CONFLICT (kid, principal) DO UPDATE SET wrapped_key = excluded.wrapped_key, gpc = excluded.gpc,
      gpc_except = excluded.gpc_except, erased_at = excluded.erased_at, account = excluded.account, withheld = excluded.withheld,
      mac = excluded.mac`,
  );
}
