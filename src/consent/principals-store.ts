import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { Fault } from '../db/group-commit.ts';
import { tellInvalid } from '../db/meta-store.ts';
import {
  type Bindings,
  type Cells,
  countOf,
  type HotTransaction,
  insertMany,
  isTrue,
  makeReads,
} from '../db/sql.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { principalKeyContext } from '../keys/master-key.ts';
import { macFits, type PrincipalRow, type StateMac } from '../tenants/state-mac.ts';
import type { AppendRequest } from './plan-write.ts';

/** The principals that a batch of writes is about, with their keys, for as long as the batch is worked through. */

const KEY_BYTES = 32;

/** One principal while a batch is worked through. */
export interface Principal {
  wrappedKey: string;
  readonly key: Buffer;
  /** A GPC signal was recorded: it opts out of every purpose but `gpcExcept`. */
  gpc: boolean;
  /** Granted by a write that said that there is no signal, since the last signal. */
  gpcExcept: ReadonlySet<string>;
  erasedAt: number | null;
}

const readPrincipals = makeReads({
  about: { kid: 'text', principal: 'text' },
  sql: `SELECT p.principal AS principal, p.wrapped_key AS wrapped_key, p.gpc AS gpc,
      p.gpc_except AS gpc_except, p.erased_at AS erased_at, p.mac AS mac
    FROM q JOIN consent_principals p ON p.kid = q.kid AND p.principal = q.principal`,
  columns: ['principal', 'wrapped_key', 'gpc', 'gpc_except', 'erased_at', 'mac'],
});

/** What is known of a principal, as the columns have it. */
export interface PrincipalColumns {
  readonly gpc: unknown;
  readonly gpc_except: string | null;
  readonly erased_at: number | null;
}

export const toPrincipalRow = ({ gpc, gpc_except, erased_at }: PrincipalColumns): PrincipalRow => ({
  gpc: isTrue(gpc),
  except: gpc_except,
  erasedAt: erased_at === null ? null : Number(erased_at),
});

const NEW: PrincipalRow = { gpc: false, except: null, erasedAt: null };
/** The signal is taken as given: a write must not make a forged row believed, and a withdrawal has to go through. */
const FORGED: PrincipalRow = { ...NEW, gpc: true };

function readRow(kid: string, mac: StateMac | undefined, cells: Cells): PrincipalRow {
  const [principal, , gpc, gpc_except, erased_at, stored] = cells;
  const row = toPrincipalRow({ gpc, gpc_except, erased_at } as PrincipalColumns);
  if (mac && macFits(stored, mac.ofPrincipal(String(principal), row))) return row;
  tellInvalid(kid);
  return FORGED;
}

/** The rows of the principals of a batch of one tenant, by principal. */
export async function loadPrincipals(tx: HotTransaction, kid: string, batch: readonly AppendRequest[]) {
  const refs = new Set(batch.map((request) => request.principal));
  const asked = [...refs].map((principal): Bindings => [kid, principal]);
  const [rows = []] = await readPrincipals(tx, asked);
  return new Map(rows.map((row) => [row[0], row]));
}

/**
 * A row that cannot be opened fails its own principal and no other.
 * @param batch of one tenant
 */
export function openPrincipals(
  rows: Awaited<ReturnType<typeof loadPrincipals>>,
  kid: string,
  batch: readonly AppendRequest[],
  wrapper: MasterKey,
): Map<string, Principal | Fault> {
  const toPrincipal = (principal: string): Principal => {
    const cells = rows.get(principal);
    const wrapped = cells?.[1] ?? null;
    const { gpc, except, erasedAt } = cells ? readRow(kid, batch[0]?.stateMac, cells) : NEW;
    const context = principalKeyContext(kid, principal);
    const key = wrapped === null ? randomBytes(KEY_BYTES) : wrapper.unwrap(String(wrapped), context);
    const wrappedKey = wrapped === null ? wrapper.wrap(key, context) : String(wrapped);
    return { wrappedKey, key, gpc, gpcExcept: new Set(parseExcept(except)), erasedAt };
  };
  const refs = new Set(batch.map((request) => request.principal));
  return new Map([...refs].map((principal) => [principal, orFault(() => toPrincipal(principal))]));
}

function orFault<T>(make: () => T): T | Fault {
  try {
    return make();
  } catch (error) {
    return new Fault(error);
  }
}

/** Purposes that are taken out of the opt-out, as the column has them. */
const parseExcept = (column: string | null): readonly string[] =>
  column === null ? [] : (JSON.parse(column) as string[]);

/** Does a recorded signal opt out of this purpose? Of the two columns as they are read. */
export const isOptedOut = (gpc: boolean, except: string | null, purpose: string): boolean =>
  gpc && !parseExcept(except).includes(purpose);

/** What is known of GPC and of the tombstone after this write (contract-2 section 13). */
export function applyToPrincipal(principal: Principal, { gpc, isGrant, entries }: AppendRequest): void {
  if (gpc === true) {
    principal.gpc = true;
    principal.gpcExcept = new Set();
  } else if (gpc === false && isGrant && principal.gpc) {
    principal.gpcExcept = new Set([...principal.gpcExcept, ...entries.map(({ purpose }) => purpose)]);
  }
  if (isGrant) principal.erasedAt = null;
}

export async function savePrincipals(
  tx: HotTransaction,
  kid: string,
  principals: ReadonlyMap<string, Principal | Fault>,
  mac: StateMac,
): Promise<void> {
  const rows = [...principals].flatMap(([ref, principal]): Bindings[] => {
    if (principal instanceof Fault) return [];
    const { wrappedKey, gpc, gpcExcept, erasedAt } = principal;
    const except = gpcExcept.size === 0 ? null : JSON.stringify([...gpcExcept].sort());
    return [[kid, ref, wrappedKey, gpc, except, erasedAt, mac.ofPrincipal(ref, { gpc, except, erasedAt })]];
  });
  await insertMany(
    tx,
    'INSERT INTO consent_principals (kid, principal, wrapped_key, gpc, gpc_except, erased_at, mac)',
    rows,
    `ON CONFLICT (kid, principal) DO UPDATE SET wrapped_key = excluded.wrapped_key, gpc = excluded.gpc,
      gpc_except = excluded.gpc_except, erased_at = excluded.erased_at, mac = excluded.mac`,
  );
}

export const knowsPrincipal = async ({ read }: Database, kid: string, principal: string): Promise<boolean> =>
  (await read('consent_principals').where({ kid, principal }).first()) !== undefined;

/** How many entries of the log name the principal and can still be opened. */
export const countOpenings = (tx: Knex, kid: string, principal: string): Promise<number> =>
  countOf(tx('consent_openings').where({ kid, principal }));
