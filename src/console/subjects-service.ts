import type { AuditAction, AuditEvent } from '../audit/audit.ts';
import { displayHandle } from '../audit/reference.ts';
import { recordAudit } from '../audit/store.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';
import type { Clock } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { unnamedIn } from '../rights/dsar/dsar.ts';
import type { makeStaffExports } from '../rights/dsar/staff-export-service.ts';
import { deviceTrail } from '../rights/dsar/trail-store.ts';
import { type ErasureTarget, scopeResults } from '../rights/erase/erasure.ts';
import { planErasure } from '../rights/erase/plan-service.ts';
import { type EraseService, KEEP_NOTHING } from '../rights/erase/service.ts';
import type { RightsApi } from '../rights/service.ts';
import { HOLDABLE } from '../rights/subject-folds.ts';
import { type HoldService, holdView } from './holds-service.ts';
import type { Jobs } from './jobs-service.ts';
import type { Staff } from './ports.ts';
import type { ErasurePlan, SubjectKey, SubjectPort, SubjectView } from './ports-dpo.ts';

/** A dpo at work on one subject: find, plan, erase, export. Every step is in the audit log, by keyed reference. */

export interface SubjectDeps {
  readonly database: Database;
  readonly rights: RightsApi;
  readonly eraser: EraseService;
  readonly exports: ReturnType<typeof makeStaffExports>;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly jobs: Jobs;
  readonly holds: HoldService;
  readonly clock: Clock;
}

const LATEST = 10;
/** All that an erasure may name of what an export of the target holds. */
const subjectsOf = ({ durables, requests, principal }: ErasureTarget): readonly string[] => [
  ...durables,
  ...requests,
  ...(principal === null ? [] : [principal.ref]),
];

export function makeSubjectPort(deps: SubjectDeps): SubjectPort {
  const { database, rights, eraser, exports, jobs, holds, clock } = deps;

  function tenantFor(staff: Staff): ConsentTenant {
    const tenant = deps.tenantOf(staff.kid);
    if (!tenant) throw new Refusal('not-found');
    return tenant;
  }

  const bodyOf = ({ kind, id }: SubjectKey) => ({ [`${kind}Id`]: id });

  /** Another tenant's request looks like none. */
  async function targetOf(staff: Staff, key: SubjectKey): Promise<ErasureTarget | null> {
    try {
      return await rights.findTarget(staff.kid, bodyOf(key));
    } catch (error) {
      if (error instanceof Refusal && error.code === 'cross-tenant-denied') return null;
      throw error;
    }
  }

  function handleOf(tenant: ConsentTenant, target: ErasureTarget): string {
    const named = target.durables[0] ?? target.principal?.ref ?? target.requests[0] ?? '';
    return displayHandle(tenant.rightsKey, named);
  }

  async function note(
    staff: Staff,
    action: AuditAction,
    object: string | null,
    detail: AuditEvent['detail'],
  ): Promise<void> {
    const { kid, role, ref } = staff;
    await recordAudit(database, { kid, at: clock(), actor: { role, ref }, action, object, detail });
  }

  /** May others share the device's id, as its latest decision has it? */
  async function isShared(staff: Staff, target: ErasureTarget): Promise<boolean> {
    const [durable] = target.durables;
    if (durable === undefined) return false;
    const [latest] = await deviceTrail(database, staff.kid, durable, 1);
    return latest?.needsAttestation ?? false;
  }

  return {
    async find(staff, key): Promise<SubjectView | null> {
      const tenant = tenantFor(staff);
      const target = await targetOf(staff, key);
      const dsar = target && (await exports.find(staff.kid, bodyOf(key)));
      const object = dsar?.head.subject.reference ?? null;
      await note(staff, 'subject.searched', object, { by: key.kind, found: dsar !== null });
      if (!target || !dsar) return null;
      const [durable] = target.durables;
      const { head, total } = dsar;
      const held = durable === undefined ? [] : await holds.ofDevice(staff.kid, durable);
      return {
        key,
        handle: handleOf(tenant, target),
        device: head.subject.device,
        decisions: total,
        latest: durable === undefined ? [] : await deviceTrail(database, staff.kid, durable, LATEST),
        contests: head.contests.map(({ contestId, filedAt, outcome }) => ({ contestId, filedAt, outcome })),
        links: head.subject.linkedRequests.length,
        hasOverride: head.override !== null,
        consentEvents: head.consent?.history.length ?? 0,
        shared: await isShared(staff, target),
        holds: held.map((hold) => holdView(tenant, hold)),
        unnamed: unnamedIn(tenant.settings),
        holdable: durable === undefined ? [] : HOLDABLE,
      };
    },

    async plan(staff, key): Promise<ErasurePlan | null> {
      const tenant = tenantFor(staff);
      const target = await targetOf(staff, key);
      const counts = target && (await planErasure(database, { kid: staff.kid, target, keep: KEEP_NOTHING }));
      const scopes = scopeResults(counts ?? {});
      const found = scopes.some(({ count }) => count > 0);
      // It tells as much as a search does.
      await note(staff, 'subject.searched', null, { by: key.kind, found, step: 'plan' });
      if (!target || !found) return null;
      return { key, handle: handleOf(tenant, target), scopes, shared: await isShared(staff, target) };
    },

    erase: (staff, key) => rights.eraseFor({ kid: staff.kid, role: 'dpo', ref: staff.ref }, bodyOf(key)),

    async startExport(staff, key, unnamed) {
      if (!unnamed && unnamedIn(tenantFor(staff).settings).length > 0) return 'unnamed';
      const target = await targetOf(staff, key);
      const missed = async (): Promise<null> => {
        await note(staff, 'subject.searched', null, { by: key.kind, found: false, step: 'export' });
        return null;
      };
      if (!target) return missed();
      const job = await jobs.open(staff, 'export', subjectsOf(target));
      // Read only now: an erasure that commits from here on ends the job.
      const dsar = await exports.gather(staff.kid, bodyOf(key), target).catch(async (error: unknown) => {
        await job.drop();
        throw error;
      });
      if (!dsar) {
        await job.drop();
        return missed();
      }
      const actor = { role: staff.role, ref: staff.ref };
      job.runFile({
        name: `dsar-${dsar.head.generatedAt.slice(0, 10)}.zip`,
        type: 'application/zip',
        write(output, signal, report) {
          report(0, dsar.total);
          return exports.write(dsar, actor, output, { onProgress: report, signal });
        },
      });
      return job.id;
    },

    async placeHold(staff, key, scopes, basis) {
      const target = await targetOf(staff, key);
      const [durable] = target?.durables ?? [];
      if (durable === undefined) {
        await note(staff, 'subject.searched', null, { by: key.kind, found: false, step: 'hold' });
        return false;
      }
      await holds.place(staff, tenantFor(staff), durable, scopes, basis);
      return true;
    },
    releaseHold: (staff, device, scope) => holds.release(staff, tenantFor(staff), device, scope),
    holds: (staff, after) => holds.page(tenantFor(staff), after),

    async receipts(staff, limit) {
      const { receipts, unreadable } = await eraser.list(staff.kid, limit);
      const dated = receipts.map((receipt) => ({ ...receipt, erasedAtMs: Date.parse(receipt.erasedAt) }));
      return { receipts: dated, unreadable };
    },
    async receipt(staff, id) {
      const found = await eraser.status(id);
      return found?.tenant === staff.kid ? { ...found, erasedAtMs: Date.parse(found.erasedAt) } : null;
    },
  };
}
