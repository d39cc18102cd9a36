import type { Staff } from '../../console/ports.ts';
import type { HoldView } from '../../console/ports-dpo.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ErasureReceipt, Scope } from '../../rights/erase.ts';
import { NOTHING } from '../../rights/erase.ts';
import { displayHandle, rightsRef } from '../../rights/reference.ts';
import { writeAudit } from '../../storage/audit-store.ts';
import type { Database } from '../../storage/db.ts';
import { type LegalHold, listHolds, placeHold, releaseHold } from '../../storage/hold-store.ts';
import type { ConsentTenant } from '../consent-tenant.ts';
import { type EraseService, KEEP_NOTHING } from '../rights/erase.ts';

/** Legal holds (GDPR articles 17(3) and 18(2)): placed by a dpo, a device and scope each; a release erases what had waited. */

export interface HoldDeps {
  readonly database: Database;
  readonly eraser: EraseService;
  readonly clock: Clock;
}

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

export function makeHoldService({ database, eraser, clock }: HoldDeps) {
  return {
    all: (kid: string) => listHolds(database, kid),
    ofDevice: (kid: string, durable: string) => listHolds(database, kid, [durable]),

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
      const found = (await listHolds(database, kid)).find(
        (hold) => hold.scope === scope && rightsRef(tenant.rightsKey, 'durable', hold.durable) === device,
      );
      if (!found) return null;
      const { durable } = found;
      const released = await database.transaction(async (tx) => {
        const gone = await releaseHold(tx, { kid, durable, scope: found.scope });
        const detail = { scope: found.scope, pending: gone !== null && gone.requestedBy !== null };
        const event = { kid, at: clock(), actor: { role, ref }, object: device };
        if (gone) await writeAudit(tx, { ...event, action: 'hold.released', detail });
        return gone;
      });
      if (!released) return null;
      if (released.requestedBy === null) return { receipt: null };
      const receipt = await eraser.erase({
        tenant,
        target: { ...NOTHING, durables: [durable] },
        requestedBy: released.requestedBy,
        actor: { role, ref },
        keep: KEEP_NOTHING,
      });
      return { receipt };
    },
  };
}
