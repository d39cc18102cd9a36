import { displayHandle, rightsRef, writeAudit } from '../audit/audit.ts';
import { isoTime } from '../lib/clock.ts';
import { recordEnded } from '../rights/erase/ended.ts';
import { type ErasureTarget, isEmptyTarget, NOTHING } from '../rights/erase/erasure.ts';
import {
  allHolds,
  type LegalHold,
  listHolds,
  placeHold,
  releaseHold,
  requestsUntil,
} from '../rights/erase/hold.ts';
import { heldReceipts, type StoredErasure } from '../rights/erase/receipts.ts';
import type { ErasureReceipt } from '../schema/rights.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { actorOf, type Context, requireTenant, type Staff } from './context.ts';

/**
 * Lists, places and releases legal holds (GDPR articles 17(3) and
 * 18(2)) for a dpo. Pages name a device by its keyed reference.
 */

type HoldContext = Pick<Context, 'database' | 'eraser' | 'tenantOf' | 'clock' | 'logAccess'>;

/** Holds per page. */
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

/** @returns the receipts of erasures that this legal hold limited */
const findLimitedReceipts = (
  receipts: readonly StoredErasure[],
  tenant: Tenant,
  { durable, createdAt }: LegalHold,
) =>
  receipts.filter(
    ({ held: heldDeviceRefs, erasedAt }) =>
      erasedAt >= createdAt && heldDeviceRefs?.includes(referenceOf(tenant, durable)),
  );

/**
 * Lists the oldest first.
 * @param after the last device of the previous page; if its hold was released, the list starts again
 */
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
    receipts: findLimitedReceipts(receipts, tenant, hold).map(({ receiptId }) => receiptId),
  }));
  return { holds, more: found.length > PAGE };
}

/**
 * The change is committed already. If the line cannot be written
 * now, the sweep writes it later and reports its failures.
 */
const recordOrLeave = ({ logAccess, clock }: HoldContext): Promise<void> =>
  recordEnded(logAccess, clock()).catch(() => {});

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

/**
 * A receipt has only references. This finds the ids that the legal hold of the device had excluded
 * from the erasure. Nobody asked to erase what the device did after it, or an objection filed since.
 */
async function findExcludedTarget(
  { database }: HoldContext,
  tenant: Tenant,
  { durable }: LegalHold,
  { refs, erasedAt }: StoredErasure,
): Promise<ErasureTarget> {
  const { kid, rightsKey } = tenant;
  const erasedRefs = new Set(refs.map(({ kind, ref }) => `${kind} ${ref}`));
  const isErased = (kind: 'durable' | 'request', id: string): boolean =>
    erasedRefs.has(`${kind} ${rightsRef(rightsKey, kind, id)}`);
  const { requests, isAll } = await requestsUntil(database, { kid, durable }, erasedAt);
  if (isErased('durable', durable))
    return isAll ? { ...NOTHING, durables: [durable] } : { ...NOTHING, requests };
  return {
    ...NOTHING,
    requests: requests.filter((id) => isErased('request', id)),
    // Links of a principal are stored by its reference, so no id is needed.
    linksOf: refs.find(({ kind }) => kind === 'principal')?.ref ?? null,
    linkedUntil: erasedAt,
  };
}

/**
 * Releases a legal hold.
 * @param runsAgain also erases the data that it had excluded from earlier erasures, with new receipts
 * @returns the receipts that it had limited, and the new ones; null if there is no such hold
 */
export async function releaseHoldOn(context: HoldContext, staff: Staff, device: string, runsAgain: boolean) {
  const { database, eraser, clock } = context;
  const tenant = requireTenant(context, staff);
  const { kid } = tenant;
  const hold = await findHold(context, tenant, device);
  if (!hold) return null;
  const limited = findLimitedReceipts(await heldReceipts(database, kid), tenant, hold);
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
  const newReceipts: ErasureReceipt[] = [];
  for (const receipt of runsAgain ? limited : []) {
    const { requestedBy, keep } = receipt;
    const target = await findExcludedTarget(context, tenant, hold, receipt);
    if (isEmptyTarget(target)) continue;
    newReceipts.push(await eraser.erase({ tenant, target, requestedBy, actor, keep }));
  }
  return { limited: limited.map(({ receiptId }) => receiptId), newReceipts };
}
