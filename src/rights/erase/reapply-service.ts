import { rightsRef } from '../../audit/audit-store.ts';
import { timelineOf } from '../../db/meta-store.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import { createTenantStore } from '../../tenants/tenant-store.ts';
import { removeTenant } from '../tenant-rows-store.ts';
import { applyLine, createLineCollector, endKeysOfLines, type LineCollector } from './ended-store.ts';
import type { EraseService } from './erase-service.ts';
import {
  type ErasureLogAccess,
  type HoldLine,
  isTombstone,
  scanErasureLog,
  type Tombstone,
} from './erasure-log-service.ts';
import type { ErasureTarget } from './erasure-service.ts';
import { storedIds } from './find-store.ts';

/**
 * An older backup brings back what was erased and which keys ended after it was made, and loses the legal
 * holds since. Before the server listens, every line of erasures.log that the database does not know is
 * applied again.
 */
export interface ReapplyDeps extends ErasureLogAccess {
  readonly eraser: EraseService;
  readonly tenantOf: (kid: string) => Tenant | undefined;
  readonly clock: Clock;
  /** Gets the problem of a damaged log of erasures; its readable lines are applied all the same. */
  readonly onBroken: (problem: string) => void;
}

/** Lines that name their subject by a keyed reference. */
type Line = Tombstone | HoldLine;

const COLUMNS = { durable: 'durable', request: 'request_id' } as const;
type Kind = keyof typeof COLUMNS;

/** Finds the ids behind the references of each line. */
async function resolveIds({ database }: ReapplyDeps, tenant: Tenant, lines: readonly Line[]) {
  const idsByLine = new Map<Line, Record<Kind, Set<string>>>();
  // Several lines may name one reference: a device may have been erased more than once, keeping other rows
  // each time.
  const linesByRef = new Map<string, Line[]>();
  for (const line of lines) {
    idsByLine.set(line, { durable: new Set(), request: new Set() });
    const refs = isTombstone(line) ? line.refs : [{ kind: 'durable', ref: line.device }];
    for (const { kind, ref } of refs)
      if (kind in COLUMNS) linesByRef.set(ref, [...(linesByRef.get(ref) ?? []), line]);
  }
  for (const kind of ['durable', 'request'] as const)
    for await (const id of storedIds(database, tenant.kid, COLUMNS[kind]))
      for (const line of linesByRef.get(rightsRef(tenant.rightsKey, kind, id)) ?? [])
        idsByLine.get(line)?.[kind].add(id);
  return idsByLine;
}

/**
 * Applies the lines in the order in which they happened: a hold keeps what was to be erased after it, and not
 * what was before.
 */
async function reapplyTenant(deps: ReapplyDeps, tenant: Tenant, lines: readonly Line[]) {
  const idsByLine = await resolveIds(deps, tenant, lines);
  for (const line of lines.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))) {
    const { durable, request } = idsByLine.get(line) ?? { durable: [], request: [] };
    const durables = [...durable];
    if (isTombstone(line)) await eraseAgain(deps, tenant, line, { durables, requests: [...request] });
    else await deps.database.transaction((tx) => applyLine(tx, line, durables));
  }
}

function eraseAgain(
  { eraser }: ReapplyDeps,
  tenant: Tenant,
  { receiptId, subject, requestedBy, at, refs, keep }: Tombstone,
  ids: Pick<ErasureTarget, 'durables' | 'requests'>,
): Promise<unknown> {
  const principal = refs.find((ref) => ref.kind === 'principal')?.ref ?? null;
  return eraser.erase({
    tenant,
    target: {
      ...ids,
      // Nobody knows the id itself any more, and nobody can open the commitment of the entry.
      principal: principal === null ? null : { ref: principal, id: '' },
      linksOf: principal,
    },
    requestedBy,
    actor: { role: 'system', ref: 'restore' },
    keep,
    again: { receiptId, subject, erasedAt: Date.parse(at) },
  });
}

async function removeAgain({ database }: ReapplyDeps, removals: readonly Tombstone[]): Promise<number> {
  const kids = new Set(removals.map(({ tenant }) => tenant));
  for (const kid of kids) await removeTenant(database, kid);
  if (kids.size > 0) {
    await database.vacuum();
    await database.truncateLog();
  }
  return kids.size;
}

/**
 * {@link reapplyErasures} at the first call, and whenever a standby has taken over since the last: without
 * synchronous replication it lacks the erasures of its last moments.
 */
export function createReapplying(deps: ReapplyDeps): () => Promise<number> {
  let lastTimeline: string | null | undefined;
  return async () => {
    const timeline = await timelineOf(deps.database);
    if (lastTimeline !== undefined && (timeline === null || timeline === lastTimeline)) return 0;
    const applied = await reapplyErasures(deps);
    lastTimeline = timeline;
    return applied;
  };
}

/** Ends keys again in a database that was put in place without `gpd restore`, which does it itself. */
async function reapplyKeys({ database }: ReapplyDeps, { keys }: LineCollector): Promise<number> {
  if (keys.length === 0) return 0;
  const { apiKeysRevoked, sealKeysDestroyed, staffRemoved } = await database.transaction((tx) =>
    endKeysOfLines(tx, keys),
  );
  return apiKeysRevoked.length + sealKeysDestroyed.length + staffRemoved.length;
}

/** Applies what the database lost. @returns the number of lines */
export async function reapplyErasures(deps: ReapplyDeps): Promise<number> {
  const lostLines = await createLineCollector(deps.database, deps.clock());
  const { problem } = await scanErasureLog(deps, lostLines.collect);
  if (problem !== null) deps.onBroken(problem);
  let applied = (await removeAgain(deps, lostLines.removals)) + (await reapplyKeys(deps, lostLines));
  const byTenant = new Map<string, Line[]>();
  for (const line of [...lostLines.people.values(), ...lostLines.holds])
    byTenant.set(line.tenant, [...(byTenant.get(line.tenant) ?? []), line]);
  for (const [kid, lines] of byTenant) {
    const tenant = deps.tenantOf(kid);
    // A tenant that is gone took all it had along.
    if (!tenant || !(await createTenantStore(deps.database).get(kid))) continue;
    await reapplyTenant(deps, tenant, lines);
    applied += lines.length;
  }
  return applied;
}
