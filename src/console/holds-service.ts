import { displayHandle, rightsRef } from '../audit/reference.ts';
import { writeAudit } from '../audit/store.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';
import type { Clock } from '../lib/clock.ts';
import type { Scope } from '../rights/erase/erasure.ts';
import type { HeldErasures } from '../rights/erase/held-service.ts';
import { allHolds, type LegalHold, listHolds, placeHold, releaseHold } from '../rights/erase/hold-store.ts';
import type { ErasureReceipt } from '../schema/rights.ts';
import type { Staff } from './ports.ts';
import type { HoldPage, HoldView } from './ports-dpo.ts';

/** Legal holds (GDPR articles 17(3) and 18(2)): placed by a dpo, a device and scope each; a release erases what had waited. */

export interface HoldDeps {
  readonly database: Database;
  readonly held: HeldErasures;
  readonly clock: Clock;
}

/** Holds that are shown on a page. */
const PAGE = 100;
/** A device has one of each scope at most. */
const OF_DEVICE = 20;

export function holdView(tenant: ConsentTenant, hold: LegalHold): HoldView {
  const { durable, scope, basis, createdAt, requestedBy } = hold;
  return {
    device: rightsRef(tenant.rightsKey, 'durable', durable),
    handle: displayHandle(tenant.rightsKey, durable),
    scope,
    basis,
    createdAt,
    requestedBy,
  };
}

export type HoldService = ReturnType<typeof makeHoldService>;

export function makeHoldService({ database, held, clock }: HoldDeps) {
  /** By the keyed reference of its device: no page names a device otherwise. */
  async function find(tenant: ConsentTenant, device: string, scope: string): Promise<LegalHold | null> {
    for await (const hold of allHolds(database, tenant.kid)) {
      if (hold.scope === scope && rightsRef(tenant.rightsKey, 'durable', hold.durable) === device)
        return hold;
    }
    return null;
  }

  return {
    /** The oldest first. A page begins after a hold that is named; after one that was released, at the beginning. */
    async page(
      tenant: ConsentTenant,
      after: { readonly device: string; readonly scope: string } | null,
    ): Promise<HoldPage> {
      const { kid } = tenant;
      const from = after && (await find(tenant, after.device, after.scope));
      const found = await listHolds(database, kid, { after: from, limit: PAGE + 1 });
      return {
        holds: found.slice(0, PAGE).map((hold) => holdView(tenant, hold)),
        more: found.length > PAGE,
      };
    },
    ofDevice: (kid: string, durable: string) => listHolds(database, kid, { durable, limit: OF_DEVICE }),

    async place(
      staff: Staff,
      tenant: ConsentTenant,
      durable: string,
      scopes: readonly Scope[],
      basis: string,
    ): Promise<void> {
      const { kid, role, ref } = staff;
      const at = clock();
      const object = rightsRef(tenant.rightsKey, 'durable', durable);
      await database.transaction(async (tx) => {
        for (const scope of scopes) await placeHold(tx, { kid, durable, scope, basis, createdAt: at });
        const detail = { scopes: [...scopes] };
        await writeAudit(tx, { kid, at, actor: { role, ref }, action: 'hold.placed', object, detail });
      });
    },

    /** What another hold still keeps stays; its own release erases it later. */
    async release(
      staff: Staff,
      tenant: ConsentTenant,
      device: string,
      scope: string,
    ): Promise<{ readonly receipt: ErasureReceipt | null } | null> {
      const { kid, role, ref } = staff;
      const found = await find(tenant, device, scope);
      if (!found) return null;
      const { durable } = found;
      const actor = { role, ref };
      const now = clock();
      const released = await database.transaction(async (tx) => {
        const gone = await releaseHold(tx, { kid, durable, scope: found.scope }, now);
        const detail = { scope: found.scope, pending: gone?.waited === true };
        const event = { kid, at: now, actor, object: device };
        if (gone) await writeAudit(tx, { ...event, action: 'hold.released', detail });
        return gone;
      });
      if (!released) return null;
      const receipts = released.waited ? await held.ofDevice(actor, kid, durable) : [];
      return { receipt: receipts.at(-1) ?? null };
    },
  };
}
