import type { Writable } from 'node:stream';
import { type AuditEvent, displayHandle, recordAudit } from '../audit/audit-store.ts';
import type { Database } from '../db/engine.ts';
import { holdsOn } from '../ingest/devices-store.ts';
import { isoTime } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { notify } from '../notify/notify-service.ts';
import { openContests } from '../rights/contests/store.ts';
import { unnamedSettings } from '../rights/dsar/dsar.ts';
import type { Dsar } from '../rights/dsar/service.ts';
import { readDeviceTrail } from '../rights/dsar/store.ts';
import { KEEP_NOTHING, planErasure } from '../rights/erase/erase-service.ts';
import { type ErasureTarget, erasesAny, heldRows, scopeResults } from '../rights/erase/erasure-service.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { actorOf, type Context, requireTenant, type Staff } from './context-service.ts';
import { placeHoldOn } from './holds-service.ts';

/**
 * Finds, exports and erases the data of one subject for a dpo. Every step is audited with a keyed reference.
 */

/** The id by which a dpo searches for a subject. */
export interface SubjectKey {
  readonly kind: 'visitor' | 'request' | 'principal';
  readonly id: string;
}

const LATEST = 10;

const bodyOf = ({ kind, id }: SubjectKey) => ({ [`${kind}Id`]: id });

/** @returns null also for another tenant's request, as if it did not exist */
async function findOwnTarget(
  { rights }: Context,
  { kid }: Staff,
  key: SubjectKey,
): Promise<ErasureTarget | null> {
  try {
    return await rights.findTarget(kid, bodyOf(key));
  } catch (error) {
    if (error instanceof Refusal && error.code === 'cross-tenant-denied') return null;
    throw error;
  }
}

function handleOf(tenant: Tenant, target: ErasureTarget): string {
  const chosenId = target.durables[0] ?? target.principal?.ref ?? target.requests[0] ?? '';
  return displayHandle(tenant.rightsKey, chosenId);
}

async function noteSearch(
  { database, clock }: Context,
  staff: Staff,
  detail: AuditEvent['detail'],
  object: string | null = null,
): Promise<void> {
  const event = { kid: staff.kid, at: clock(), actor: actorOf(staff), object, detail };
  await recordAudit(database, { ...event, action: 'subject.searched' });
}

/** True if the latest decision about the device says that others may share its id. */
async function isShared(database: Database, kid: string, durable: string | undefined): Promise<boolean> {
  if (durable === undefined) return false;
  const [latest] = await readDeviceTrail(database, kid, durable, 1);
  return latest?.needsAttestation ?? false;
}

/** Audits the search. @returns null if nothing is stored about the subject */
export async function findSubject(context: Context, staff: Staff, key: SubjectKey) {
  const { database, exports, readWhole } = context;
  const { kid } = staff;
  const tenant = requireTenant(context, staff);
  const target = await findOwnTarget(context, staff, key);
  const dsar = target && (await readWhole(staff, () => exports.find(kid, bodyOf(key))));
  const object = dsar?.head.subject.reference ?? null;
  await noteSearch(context, staff, { by: key.kind, found: dsar !== null }, object);
  if (!target || !dsar) return null;
  const [durable] = target.durables;
  const { head, total } = dsar;
  return {
    key,
    handle: handleOf(tenant, target),
    device: head.subject.device,
    decisions: total,
    latest: durable === undefined ? [] : await readDeviceTrail(database, kid, durable, LATEST),
    contests: head.contests,
    links: head.subject.linkedRequests.length,
    hasOverride: head.override !== null,
    consentEvents: head.consent?.history.length ?? 0,
    shared: await isShared(database, kid, durable),
    /** The basis of the device's legal hold; null without one. */
    hold:
      durable === undefined ? null : ((await holdsOn(database.read, kid, [durable])).get(durable) ?? null),
    hasDevice: durable !== undefined,
    /** Unset settings that an export needs to name the controller. */
    unnamed: unnamedSettings(tenant.settings),
  };
}

/** Counts what an erasure would delete, and changes nothing. @returns null if it would delete nothing */
export async function planErase(context: Context, staff: Staff, key: SubjectKey) {
  const { database } = context;
  const { kid } = staff;
  const tenant = requireTenant(context, staff);
  const target = await findOwnTarget(context, staff, key);
  const counts = target && (await planErasure(database, { kid, target, keep: KEEP_NOTHING }));
  const scopes = scopeResults(counts ?? {});
  const found = scopes.some(({ count }) => count > 0);
  // A plan reveals as much as a search, so it is audited like one.
  await noteSearch(context, staff, { by: key.kind, found, step: 'plan' });
  if (!target || !found) return null;
  const shared = await isShared(database, kid, target.durables[0]);
  const erasesContests = scopes.some(({ scope, action }) => scope === 'contests' && action === 'erased');
  const open = erasesContests ? await openContests(database, kid, target) : { count: 0, dueAt: 0 };
  const deletes = erasesAny(counts ?? {});
  return { key, handle: handleOf(tenant, target), scopes, shared, open, deletes, held: heldRows(scopes) };
}

export function eraseSubject({ rights }: Context, { kid, ref }: Staff, key: SubjectKey) {
  return rights.eraseFor({ kid, role: 'dpo', ref }, bodyOf(key));
}

/**
 * @param unnamed true allows an export that does not name the controller
 * @returns `unnamed` if the export would not name the controller; null if nothing is stored about the subject
 */
export async function findExport(context: Context, staff: Staff, key: SubjectKey, unnamed: boolean) {
  const { settings } = requireTenant(context, staff);
  if (!unnamed && unnamedSettings(settings).length > 0) return 'unnamed';
  const target = await findOwnTarget(context, staff, key);
  const dsar = target && (await context.exports.gather(staff.kid, bodyOf(key), target));
  if (dsar === null) await noteSearch(context, staff, { by: key.kind, found: false, step: 'export' });
  return dsar;
}

export async function writeExport(context: Context, staff: Staff, dsar: Dsar, output: Writable) {
  const { database, exports, readWhole, clock } = context;
  await readWhole(staff, () => exports.write(dsar, actorOf(staff), output));
  const at = clock();
  const notification = { event: 'export.ready', data: { readyAt: isoTime(at) }, at } as const;
  await database.transaction((tx) => notify(tx, requireTenant(context, staff), notification));
}

/** @returns false if the subject has no device */
export async function holdSubject(
  context: Context,
  staff: Staff,
  key: SubjectKey,
  basis: string,
): Promise<boolean> {
  const [durable] = (await findOwnTarget(context, staff, key))?.durables ?? [];
  if (durable === undefined) {
    await noteSearch(context, staff, { by: key.kind, found: false, step: 'hold' });
    return false;
  }
  await placeHoldOn(context, staff, { durable, basis });
  return true;
}
