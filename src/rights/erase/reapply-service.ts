import { rightsRef } from '../../audit/reference.ts';
import type { ConsentTenant } from '../../consent/tenant.ts';
import type { Database } from '../../db/db.ts';
import { makeTenantStore } from '../../tenants/tenant-store.ts';
import { removeTenant } from '../tenant-removal-store.ts';
import { applyCuts } from './cuts-store.ts';
import type { Cut, Tombstone } from './erasure-chain-service.ts';
import { heldIds } from './held-ids-store.ts';
import { knownReceipts } from './receipts-store.ts';
import type { EraseService } from './service.ts';
import { readOutsideLog } from './tombstone-files.ts';

/**
 * An older backup brings back what was erased after it was made. Before the server listens, every tombstone whose
 * receipt the database does not know is applied again.
 */
export interface ReapplyDeps {
  readonly database: Database;
  readonly dataDir: string;
  readonly logKey: Uint8Array;
  /** What is wrong with the log of erasures; what can be read of it is applied all the same. */
  readonly onBroken: (problem: string) => void;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly eraser: EraseService;
}

/** By reference: one device may have been erased more than once, and each time something else was kept. */
type Wanted = Map<string, Tombstone[]>;

/** The ids behind the references, by receipt. */
async function resolve(
  deps: ReapplyDeps,
  tenant: ConsentTenant,
  tombstones: readonly Tombstone[],
): Promise<Map<string, { durables: Set<string>; requests: Set<string> }>> {
  const wanted: Wanted = new Map();
  const found = new Map<string, { durables: Set<string>; requests: Set<string> }>();
  for (const tombstone of tombstones) {
    found.set(tombstone.receiptId, { durables: new Set(), requests: new Set() });
    for (const { kind, ref } of tombstone.refs)
      if (kind === 'durable' || kind === 'request') wanted.set(ref, [...(wanted.get(ref) ?? []), tombstone]);
  }
  for (const [kind, column] of [
    ['durable', 'durable'],
    ['request', 'request_id'],
  ] as const) {
    for await (const id of heldIds(deps.database, tenant.kid, column)) {
      for (const { receiptId } of wanted.get(rightsRef(tenant.rightsKey, kind, id)) ?? []) {
        const ids = found.get(receiptId);
        (kind === 'durable' ? ids?.durables : ids?.requests)?.add(id);
      }
    }
  }
  return found;
}

async function reapplyTenant(
  deps: ReapplyDeps,
  tenant: ConsentTenant,
  tombstones: readonly Tombstone[],
): Promise<void> {
  const found = await resolve(deps, tenant, tombstones);
  for (const { receiptId, subject, requestedBy, at, refs, keep } of tombstones) {
    const ids = found.get(receiptId);
    const principal = refs.find((ref) => ref.kind === 'principal')?.ref ?? null;
    await deps.eraser.erase({
      tenant,
      target: {
        durables: [...(ids?.durables ?? [])],
        requests: [...(ids?.requests ?? [])],
        // The id itself is known to nobody any more; the entry's commitment opens for nobody either.
        principal: principal === null ? null : { ref: principal, id: '' },
        linksOf: principal,
      },
      requestedBy,
      actor: { role: 'system', ref: 'restore' },
      keep,
      again: { receiptId, subject, erasedAt: Date.parse(at) },
    });
  }
}

/** A tenant that was made anew after its offboarding is another one. */
async function reapplyOffboarding(deps: ReapplyDeps, tombstones: readonly Tombstone[]): Promise<number> {
  let applied = 0;
  for (const { tenant: kid, at, refs } of tombstones) {
    if (!refs.some(({ kind }) => kind === 'tenant')) continue;
    const found = await makeTenantStore(deps.database).get(kid);
    if (!found || found.createdAt > Date.parse(at)) continue;
    await removeTenant(deps.database, kid);
    applied += 1;
  }
  if (applied > 0) {
    await deps.database.vacuum();
    await deps.database.truncateLog();
  }
  return applied;
}

/** Returns how many lines were applied again. */
export async function reapplyErasures(deps: ReapplyDeps): Promise<number> {
  const { tombstones, cuts, problem } = await readOutsideLog(deps);
  if (problem !== null) deps.onBroken(problem);
  return (await reapplyCuts(deps, cuts)) + (await reapplyTombstones(deps, tombstones));
}

/** `gpd restore` has done it; a database that was put in place otherwise begins here. */
async function reapplyCuts({ database }: ReapplyDeps, cuts: readonly Cut[]): Promise<number> {
  if (cuts.length === 0) return 0;
  return database.transaction(async (tx) => {
    const { apiKeysRevoked, sealKeysDestroyed } = await applyCuts(tx, cuts);
    return apiKeysRevoked.length + sealKeysDestroyed.length;
  });
}

async function reapplyTombstones(deps: ReapplyDeps, tombstones: readonly Tombstone[]): Promise<number> {
  if (tombstones.length === 0) return 0;
  const ids = [...new Set(tombstones.map(({ receiptId }) => receiptId))];
  const known = await knownReceipts(deps.database, ids);
  const lost = new Map(
    tombstones
      .filter(({ receiptId, refs }) => !known.has(receiptId) && !refs.some(({ kind }) => kind === 'tenant'))
      .map((line) => [line.receiptId, line]),
  );
  const byTenant = new Map<string, Tombstone[]>();
  for (const line of lost.values()) byTenant.set(line.tenant, [...(byTenant.get(line.tenant) ?? []), line]);
  let applied = await reapplyOffboarding(deps, tombstones);
  for (const [kid, lines] of byTenant) {
    const tenant = deps.tenantOf(kid);
    // The tenant itself is gone, with all it had.
    if (!tenant || !(await makeTenantStore(deps.database).get(kid))) continue;
    await reapplyTenant(deps, tenant, lines);
    applied += lines.length;
  }
  return applied;
}
