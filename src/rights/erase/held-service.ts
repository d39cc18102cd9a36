import type { Actor } from '../../lib/act.ts';
import type { ErasureReceipt } from '../../schema/rights.ts';
import type { ContestDeps } from '../contests/change-service.ts';
import { NOTHING } from './erasure.ts';
import { dueErasures } from './hold-store.ts';
import { type EraseService, KEEP_NOTHING, UNDER_WAY_MS } from './service.ts';

/** Erasures that waited for a legal hold: run by its release, and by the next sweep where a crash came in between. */

export interface HeldDeps extends Pick<ContestDeps, 'database' | 'tenantOf' | 'clock'> {
  readonly eraser: EraseService;
}

const SYSTEM: Actor = { role: 'system', ref: 'hold-released' };

export function makeHeldErasures({ database, eraser, tenantOf, clock }: HeldDeps) {
  /** What another hold still keeps stays, and waits for that one. */
  async function run(actor: Actor, before: number, of?: { readonly kid: string; readonly durable?: string }) {
    const receipts: ErasureReceipt[] = [];
    for (const { kid, durable, requestedBy, whole, requests } of await dueErasures(database, before, of)) {
      const tenant = tenantOf(kid);
      if (!tenant) continue;
      const target = { ...NOTHING, requests, durables: whole ? [durable] : [] };
      receipts.push(await eraser.erase({ tenant, target, requestedBy, actor, keep: KEEP_NOTHING }));
    }
    return receipts;
  }
  return {
    /** Of a device whose hold was released just now. */
    ofDevice: (actor: Actor, kid: string, durable: string) => run(actor, clock(), { kid, durable }),
    /** All that is due, now. */
    resume: () => run(SYSTEM, clock()),
    /** The same of one tenant, for what no release is at work on any more. */
    resumeStale: (kid: string) => run(SYSTEM, clock() - UNDER_WAY_MS, { kid }),
  };
}
