import type { Database } from '../db/db.ts';
import { bumpTenant } from '../db/revision.ts';
import { appendOne, createLog } from '../log/append-store.ts';
import { emptyTables, tableWithRows } from '../rights/tenant-rows-store.ts';
import type { Purpose } from '../tenants/tenant.ts';
import { insertTenant, type NewTenant, type PurposeRow, rowToPurpose } from '../tenants/tenant-store.ts';
import { definePurpose } from './terms-store.ts';

export interface TenantRows extends NewTenant {
  /** The log begins with its genesis, and says that the first purpose was defined. */
  readonly log: { readonly origin: string; readonly vkey: string; readonly genesis: Uint8Array };
  readonly purpose: Purpose;
}

/**
 * All of a tenant in one transaction, after what an earlier tenant of its kid left.
 * @returns false when the kid is taken
 */
export async function createTenantRows(database: Database, rows: TenantRows, now: number): Promise<boolean> {
  const { kid } = rows.tenant;
  const { origin, vkey, genesis } = rows.log;
  await emptyTables(database, kid);
  return database.transaction(async (tx) => {
    if (!(await insertTenant(tx, rows))) return false;
    const left = await tableWithRows(tx, kid);
    if (left !== null)
      throw new Error(`${left} has rows of an earlier tenant ${kid}: stop the servers, and try again`);
    await createLog(tx, { kid, origin, vkey });
    await appendOne(tx, kid, genesis);
    await definePurpose(tx, kid, rows.purpose, now);
    return true;
  });
}

/**
 * Tenants that were made before there was a ledger. One that has the secret of a log, or entries, had a log and lost its
 * head: that is damage, and nothing to begin anew.
 * @param secret the purpose of a log's secret
 */
export function withoutLog({ read }: Database, secret: string): Promise<readonly string[]> {
  return read('tenants')
    .leftJoin('ledger_heads', 'ledger_heads.kid', 'tenants.kid')
    .whereNull('ledger_heads.kid')
    .whereNotIn('tenants.kid', read('tenant_secrets').where({ purpose: secret }).select('kid'))
    .whereNotIn('tenants.kid', read('ledger_entries').select('kid'))
    .orderBy('tenants.kid')
    .pluck('tenants.kid');
}

/** The log of a tenant that has none, with the purposes that were defined before it. Nothing where another node was faster. */
export function beginLog(
  database: Database,
  begun: {
    readonly kid: string;
    readonly log: TenantRows['log'];
    readonly secret: { readonly purpose: string; readonly wrapped: string };
    /** For a tenant without one. */
    readonly purpose: Purpose;
  },
  now: number,
): Promise<void> {
  const { kid, log, secret } = begun;
  return database.transaction(async (tx) => {
    // The row of the tenant is locked from here on, and its revision tells running servers.
    if (!(await bumpTenant(tx, kid))) return;
    if (await tx('ledger_heads').where({ kid }).first('kid')) return;
    await tx('tenant_secrets').insert({ kid, ...secret });
    await createLog(tx, { kid, origin: log.origin, vkey: log.vkey });
    await appendOne(tx, kid, log.genesis);
    const rows = (await tx('purposes').where({ kid }).orderBy('id')) as PurposeRow[];
    const purposes = rows.length === 0 ? [begun.purpose] : rows.map(rowToPurpose);
    for (const purpose of purposes) await definePurpose(tx, kid, purpose, now);
  });
}
