import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { Fault } from '../db/group-commit.ts';
import { makeReads } from '../db/reads.ts';
import { type Bindings, type HotTransaction, insertMany, isTrue } from '../db/sql.ts';
import { principalKeyContext } from '../keys/contexts.ts';
import type { MasterKey } from '../keys/master-key.ts';
import type { AppendRequest } from './append.ts';

/** The principals that a batch of writes is about, with their keys, for as long as the batch is worked through. */

const KEY_BYTES = 32;

/** One principal while a batch is worked through. */
export interface Principal {
  wrappedKey: string;
  readonly key: Buffer;
  gpc: boolean;
  erasedAt: number | null;
}

const readPrincipals = makeReads({
  about: { kid: 'text', principal: 'text' },
  sql: `SELECT p.principal AS principal, p.wrapped_key AS wrapped_key, p.gpc AS gpc, p.erased_at AS erased_at
    FROM q JOIN consent_principals p ON p.kid = q.kid AND p.principal = q.principal`,
  columns: ['principal', 'wrapped_key', 'gpc', 'erased_at'],
});

/** A principal of a row that cannot be opened is a fault, and those beside it are not. */
export async function loadPrincipals(
  tx: HotTransaction,
  kid: string,
  batch: readonly AppendRequest[],
  wrapper: MasterKey,
): Promise<Map<string, Principal | Fault>> {
  const refs = [...new Set(batch.map((request) => request.principal))];
  const asked = refs.map((principal): Bindings => [kid, principal]);
  const [rows = []] = await readPrincipals(tx, asked);
  const known = new Map(rows.map((row) => [row[0], row]));
  const toPrincipal = (principal: string): Principal => {
    const [, wrapped = null, gpc, erasedAt = null] = known.get(principal) ?? [];
    const context = principalKeyContext(kid, principal);
    const key = wrapped === null ? randomBytes(KEY_BYTES) : wrapper.unwrap(String(wrapped), context);
    const wrappedKey = wrapped === null ? wrapper.wrap(key, context) : String(wrapped);
    const erased = erasedAt === null ? null : Number(erasedAt);
    return { wrappedKey, key, gpc: isTrue(gpc), erasedAt: erased };
  };
  return new Map(refs.map((principal) => [principal, orFault(() => toPrincipal(principal))]));
}

function orFault<T>(make: () => T): T | Fault {
  try {
    return make();
  } catch (error) {
    return new Fault(error);
  }
}

/** What is known of GPC and of the tombstone after this write. */
export function applyToPrincipal(principal: Principal, request: AppendRequest): void {
  principal.gpc = request.gpc ?? principal.gpc;
  if (request.isGrant) principal.erasedAt = null;
}

export async function savePrincipals(
  tx: HotTransaction,
  kid: string,
  principals: ReadonlyMap<string, Principal | Fault>,
): Promise<void> {
  const rows = [...principals].flatMap(([ref, principal]): Bindings[] => {
    if (principal instanceof Fault) return [];
    const { wrappedKey, gpc, erasedAt } = principal;
    return [[kid, ref, wrappedKey, gpc, erasedAt]];
  });
  await insertMany(
    tx,
    'INSERT INTO consent_principals (kid, principal, wrapped_key, gpc, erased_at)',
    rows,
    `ON CONFLICT (kid, principal) DO UPDATE SET wrapped_key = excluded.wrapped_key, gpc = excluded.gpc,
      erased_at = excluded.erased_at`,
  );
}

/** How many entries of the log name the principal and can still be opened. */
export async function countOpenings(tx: Knex, kid: string, principal: string): Promise<number> {
  const row = await tx('consent_openings').where({ kid, principal }).count<{ n: number }>({ n: '*' }).first();
  return Number(row?.n ?? 0);
}
