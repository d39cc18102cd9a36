import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { AppendRequest } from '../consent/ports.ts';
import { principalKeyContext } from '../keys/contexts.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { isTrue } from './sql.ts';

/** The principals that a batch of writes is about, with their keys, for as long as the batch is worked through. */

const KEY_BYTES = 32;

interface PrincipalRow {
  readonly kid: string;
  readonly principal: string;
  readonly wrapped_key: string | null;
  readonly gpc: unknown;
  readonly erased_at: number | null;
}

/** One principal while a batch is worked through. */
export interface Principal {
  wrappedKey: string;
  readonly key: Buffer;
  gpc: boolean;
  erasedAt: number | null;
}

export async function loadPrincipals(
  tx: Knex.Transaction,
  kid: string,
  batch: readonly AppendRequest[],
  wrapper: MasterKey,
): Promise<Map<string, Principal>> {
  const refs = [...new Set(batch.map((request) => request.principal))];
  const rows = await tx<PrincipalRow>('consent_principals').where({ kid }).whereIn('principal', refs);
  const known = new Map(rows.map((row) => [row.principal, row]));
  return new Map(
    refs.map((principal) => {
      const row = known.get(principal);
      const context = principalKeyContext(kid, principal);
      const key =
        row?.wrapped_key == null ? randomBytes(KEY_BYTES) : wrapper.unwrap(row.wrapped_key, context);
      const wrappedKey = row?.wrapped_key ?? wrapper.wrap(key, context);
      return [principal, { wrappedKey, key, gpc: isTrue(row?.gpc), erasedAt: row?.erased_at ?? null }];
    }),
  );
}

/** What is known of GPC and of the tombstone after this write. */
export function applyToPrincipal(principal: Principal, request: AppendRequest): void {
  principal.gpc = request.gpc ?? principal.gpc;
  if (request.isGrant) principal.erasedAt = null;
}

export async function savePrincipals(
  tx: Knex.Transaction,
  kid: string,
  principals: Map<string, Principal>,
): Promise<void> {
  const rows = [...principals].map(([principal, { wrappedKey, gpc, erasedAt }]) => ({
    kid,
    principal,
    wrapped_key: wrappedKey,
    gpc,
    erased_at: erasedAt,
  }));
  if (rows.length > 0) await tx('consent_principals').insert(rows).onConflict(['kid', 'principal']).merge();
}
