import { displayHandle, rightsRef } from '../audit/reference.ts';
import { writeAudit } from '../audit/store.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';
import type { Scope } from '../rights/erase/erasure.ts';
import { allHolds, type LegalHold, listHolds, placeHold, releaseHold } from '../rights/erase/hold-store.ts';
import { recordEnded } from '../rights/erase/tombstone-files.ts';
import { actorOf, type Context, requireTenant, type Staff } from './context-make.ts';

/** Legal holds (GDPR articles 17(3) and 18(2)): placed by a dpo, a device and scope each; a release erases what had waited. */

type HoldContext = Pick<Context, 'database' | 'held' | 'tenantOf' | 'clock' | 'outside'>;

/** How a page names a hold: a device by its keyed reference, and a kind of data. */
export interface HoldPlace {
  readonly device: string;
  readonly scope: string;
}

/** Holds that are shown on a page. */
const PAGE = 100;
/** A device has one of each scope at most. */
const OF_DEVICE = 20;

function viewOf(tenant: ConsentTenant, hold: LegalHold) {
  const { durable, scope, basis, createdAt, requestedBy } = hold;
  return {
    device: rightsRef(tenant.rightsKey, 'durable', durable),
    handle: displayHandle(tenant.rightsKey, durable),
    scope,
    basis,
    createdAt,
    /** Who asked for the erasure that waits for it. */
    requestedBy,
  };
}

async function find(database: Database, { kid, rightsKey }: ConsentTenant, { device, scope }: HoldPlace) {
  for await (const hold of allHolds(database, kid)) {
    if (hold.scope === scope && rightsRef(rightsKey, 'durable', hold.durable) === device) return hold;
  }
  return null;
}

/** The oldest first. A page begins after a hold that is named; after one that was released, at the beginning. */
export async function readHolds(context: HoldContext, staff: Staff, after: HoldPlace | null) {
  const { database } = context;
  const tenant = requireTenant(context, staff);
  const from = after && (await find(database, tenant, after));
  const found = await listHolds(database, staff.kid, { after: from, limit: PAGE + 1 });
  const holds = found.slice(0, PAGE).map((hold) => viewOf(tenant, hold));
  // More: there are younger ones.
  return { holds, more: found.length > PAGE };
}

export async function deviceHolds({ database }: HoldContext, tenant: ConsentTenant, durable: string) {
  const holds = await listHolds(database, tenant.kid, { durable, limit: OF_DEVICE });
  return holds.map((hold) => viewOf(tenant, hold));
}

/** The hold is placed or released by now; a line that cannot be written is left to the sweep, which reports its failures. */
const recordOrLeave = ({ outside, clock }: HoldContext, kid: string): Promise<void> =>
  recordEnded(outside, kid, clock()).catch(() => {});

export async function placeHolds(
  context: HoldContext,
  staff: Staff,
  { durable, scopes, basis }: Pick<LegalHold, 'durable' | 'basis'> & { readonly scopes: readonly Scope[] },
): Promise<void> {
  const { database, clock } = context;
  const { kid, rightsKey } = requireTenant(context, staff);
  const at = clock();
  const object = rightsRef(rightsKey, 'durable', durable);
  await database.transaction(async (tx) => {
    for (const scope of scopes) await placeHold(tx, { kid, durable, scope, basis, createdAt: at });
    const detail = { scopes: [...scopes] };
    await writeAudit(tx, { kid, at, actor: actorOf(staff), action: 'hold.placed', object, detail });
  });
  await recordOrLeave(context, kid);
}

/**
 * What another hold still keeps stays; its own release erases it later.
 * @returns the receipt of the erasure that had waited, if one had; null: there is no such hold
 */
export async function endHold(context: HoldContext, staff: Staff, place: HoldPlace) {
  const { database, held, clock } = context;
  const { kid } = staff;
  const found = await find(database, requireTenant(context, staff), place);
  if (!found) return null;
  const { durable, scope } = found;
  const actor = actorOf(staff);
  const now = clock();
  const released = await database.transaction(async (tx) => {
    const gone = await releaseHold(tx, { kid, durable, scope }, now);
    const detail = { scope, pending: gone?.waited === true };
    const event = { kid, at: now, actor, object: place.device };
    if (gone) await writeAudit(tx, { ...event, action: 'hold.released', detail });
    return gone;
  });
  if (!released) return null;
  await recordOrLeave(context, kid);
  const receipts = released.waited ? await held.ofDevice(actor, kid, durable) : [];
  return { receipt: receipts.at(-1) ?? null };
}
