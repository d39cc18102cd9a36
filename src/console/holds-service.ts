import { displayHandle, rightsRef } from '../audit/audit.ts';
import { writeAudit } from '../audit/store.ts';
import { isoTime } from '../lib/clock.ts';
import { recordEnded } from '../rights/erase/ended.ts';
import { type ErasureTarget, isEmptyTarget, NOTHING } from '../rights/erase/erasure.ts';
import {
  allHolds,
  type LegalHold,
  listHolds,
  placeHold,
  releaseHold,
  requestsOfDevice,
} from '../rights/erase/hold.ts';
import { heldReceipts, type StoredErasure } from '../rights/erase/receipts.ts';
import type { ErasureReceipt } from '../schema/rights.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { actorOf, type Context, requireTenant, type Staff } from './context.ts';

/** Legal holds (GDPR articles 17(3) and 18(2)) as a dpo places, lists and releases them. A page names a device by its keyed reference. */

type HoldContext = Pick<Context, 'database' | 'eraser' | 'tenantOf' | 'clock' | 'outside'>;

/** Holds that are shown on a page. */
const PAGE = 100;

const referenceOf = ({ rightsKey }: Tenant, durable: string): string =>
  rightsRef(rightsKey, 'durable', durable);

async function findHold(
  { database }: HoldContext,
  tenant: Tenant,
  device: string,
): Promise<LegalHold | null> {
  for await (const hold of allHolds(database, tenant.kid))
    if (referenceOf(tenant, hold.durable) === device) return hold;
  return null;
}

/** Receipts of erasures that this hold limited. */
const limitedBy = (receipts: readonly StoredErasure[], tenant: Tenant, { durable, createdAt }: LegalHold) =>
  receipts.filter(
    ({ held, erasedAt }) => erasedAt >= createdAt && held?.includes(referenceOf(tenant, durable)),
  );

/** The oldest first. A page begins after a hold that is named; after one that was released, at the beginning. */
export async function readHolds(context: HoldContext, staff: Staff, after: string | null) {
  const { database } = context;
  const tenant = requireTenant(context, staff);
  const from = after === null ? null : await findHold(context, tenant, after);
  const found = await listHolds(database, staff.kid, { after: from, limit: PAGE + 1 });
  const receipts = await heldReceipts(database, staff.kid);
  const holds = found.slice(0, PAGE).map((hold) => ({
    device: referenceOf(tenant, hold.durable),
    handle: displayHandle(tenant.rightsKey, hold.durable),
    basis: hold.basis,
    createdAt: hold.createdAt,
    receipts: limitedBy(receipts, tenant, hold).map(({ receiptId }) => receiptId),
  }));
  // More: there are younger ones.
  return { holds, more: found.length > PAGE };
}

/** The hold is placed or released by now; a line that cannot be written is left to the sweep, which reports its failures. */
const recordOrLeave = ({ outside, clock }: HoldContext): Promise<void> =>
  recordEnded(outside, clock()).catch(() => {});

export async function placeHoldOn(
  context: HoldContext,
  staff: Staff,
  { durable, basis }: Pick<LegalHold, 'durable' | 'basis'>,
): Promise<void> {
  const { database, clock } = context;
  const tenant = requireTenant(context, staff);
  const { kid } = tenant;
  const at = clock();
  const object = referenceOf(tenant, durable);
  await database.transaction(async (tx) => {
    await placeHold(tx, { kid, durable, basis, createdAt: at });
    await writeAudit(tx, { kid, at, actor: actorOf(staff), action: 'hold.placed', object, detail: {} });
  });
  await recordOrLeave(context);
}

/** The part of a receipt's target that the hold of this device kept. A receipt has references alone; the device leads to their ids. */
async function keptTarget(
  { database }: HoldContext,
  tenant: Tenant,
  { durable }: LegalHold,
  { refs }: StoredErasure,
): Promise<ErasureTarget> {
  const { kid, rightsKey } = tenant;
  const has = (kind: 'durable' | 'request', id: string): boolean =>
    refs.some((one) => one.kind === kind && one.ref === rightsRef(rightsKey, kind, id));
  if (has('durable', durable)) return { ...NOTHING, durables: [durable] };
  const wanted = new Set(refs.map(({ ref }) => ref));
  const requests = await requestsOfDevice(database, { kid, durable });
  return {
    ...NOTHING,
    requests: requests.filter((id) => wanted.has(rightsRef(rightsKey, 'request', id))),
    // Links of a principal are found by its own reference.
    linksOf: refs.find(({ kind }) => kind === 'principal')?.ref ?? null,
  };
}

/**
 * Releases a hold.
 * @param runsAgain erases what it kept of earlier erasures, under new receipts
 * @returns the receipts that it limited and those of the erasures that ran; null: there is no such hold
 */
export async function endHold(context: HoldContext, staff: Staff, device: string, runsAgain: boolean) {
  const { database, eraser, clock } = context;
  const tenant = requireTenant(context, staff);
  const { kid } = tenant;
  const hold = await findHold(context, tenant, device);
  if (!hold) return null;
  const limited = limitedBy(await heldReceipts(database, kid), tenant, hold);
  const [actor, now] = [actorOf(staff), clock()];
  const released = await database.transaction(async (tx) => {
    const isReleased = await releaseHold(tx, hold);
    const detail = { placedAt: isoTime(hold.createdAt), receipts: limited.length };
    if (isReleased)
      await writeAudit(tx, { kid, at: now, actor, action: 'hold.released', object: device, detail });
    return isReleased;
  });
  if (!released) return null;
  await recordOrLeave(context);
  const again: ErasureReceipt[] = [];
  for (const receipt of runsAgain ? limited : []) {
    const { requestedBy, keep } = receipt;
    const target = await keptTarget(context, tenant, hold, receipt);
    if (isEmptyTarget(target)) continue;
    again.push(await eraser.erase({ tenant, target, requestedBy, actor, keep }));
  }
  return { limited: limited.map(({ receiptId }) => receiptId), again };
}
