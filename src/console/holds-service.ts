import { displayHandle, rightsRef, writeAudit } from '../audit/audit-store.ts';
import { isoTime } from '../lib/clock.ts';
import { recordEnded } from '../rights/erase/ended-store.ts';
import { allHolds, type LegalHold, listHolds, placeHold, releaseHold } from '../rights/erase/hold-store.ts';
import { heldReceipts, type StoredErasure } from '../rights/erase/receipts-store.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { actorOf, type Context, requireTenant, type Staff } from './context-service.ts';
import type { Turn } from './paging.ts';

/**
 * Lists, places and releases legal holds (GDPR articles 17(3) and
 * 18(2)) for a dpo. Pages name a device by its keyed reference.
 */

type HoldContext = Pick<Context, 'database' | 'tenantOf' | 'clock' | 'logAccess'>;

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
 * @param turn names a device; if its hold was released, the list starts again
 */
export async function readHolds(context: HoldContext, staff: Staff, turn: Turn<string>, limit: number) {
  const { database } = context;
  const tenant = requireTenant(context, staff);
  const after = turn.cursor === null ? null : await findHold(context, tenant, turn.cursor);
  const isBackward = after !== null && turn.isBackward;
  const found = await listHolds(database, staff.kid, { after, isBackward, limit });
  const receipts = await heldReceipts(database, staff.kid);
  const holds = found.map((hold) => ({
    device: referenceOf(tenant, hold.durable),
    handle: displayHandle(tenant.rightsKey, hold.durable),
    basis: hold.basis,
    createdAt: hold.createdAt,
    receipts: findLimitedReceipts(receipts, tenant, hold).map(({ receiptId }) => receiptId),
  }));
  return { holds, turn: { cursor: after, isBackward } };
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

/** Releases a legal hold. @returns the receipts that it had limited; null if there is no such hold */
export async function releaseHoldOn(context: HoldContext, staff: Staff, device: string) {
  const { database, clock } = context;
  const tenant = requireTenant(context, staff);
  const { kid } = tenant;
  const hold = await findHold(context, tenant, device);
  if (!hold) return null;
  const limited = findLimitedReceipts(await heldReceipts(database, kid), tenant, hold);
  const [actor, at] = [actorOf(staff), clock()];
  const released = await database.transaction(async (tx) => {
    const isReleased = await releaseHold(tx, hold);
    const detail = { placedAt: isoTime(hold.createdAt), receipts: limited.length };
    if (isReleased) await writeAudit(tx, { kid, at, actor, action: 'hold.released', object: device, detail });
    return isReleased;
  });
  if (!released) return null;
  await recordOrLeave(context);
  return limited.map(({ receiptId }) => receiptId);
}
