import { randomBytes } from 'node:crypto';
import type { Actor } from '../../lib/act.ts';
import { type Clock, isoTime, MINUTE } from '../../lib/clock.ts';
import { makeUlid } from '../../lib/ulid.ts';
import {
  asErased,
  asPending,
  BACKUP_BASIS,
  CONSENT_BASIS,
  type ErasureReceipt,
  type ErasureTarget,
  isIncomplete,
  type Keep,
  type Requester,
  type ScopeCounts,
  scopeResults,
} from '../../rights/erase.ts';
import { rightsRef } from '../../rights/reference.ts';
import { writeAudit } from '../../storage/audit-store.ts';
import type { Needles } from '../../storage/byte-scan.ts';
import type { Database } from '../../storage/db.ts';
import { type ErasedRows, eraseRows } from '../../storage/erase-store.ts';
import {
  findErasure,
  insertErasure,
  listErasures,
  type StoredErasure,
  saveErasureStep,
  type TombstoneRef,
  unfinishedErasures,
} from '../../storage/erasure-receipts.ts';
import { lockHead } from '../../storage/ledger-append.ts';
import { LAST_BACKUP, readMeta } from '../../storage/meta-store.ts';
import { shredWithin } from '../../storage/principal-erase.ts';
import { notifications } from '../consent-service.ts';
import type { ConsentTenant } from '../consent-tenant.ts';
import type { DiskReserve } from '../disk-reserve.ts';
import { makeCleaner } from './clean.ts';
import { appendTombstone } from './tombstones.ts';

/** Erasure: one transaction for the rows, a tombstone outside the database, then no byte left in the files. */

export interface EraseDeps {
  readonly database: Database;
  readonly dataDir: string;
  readonly clock: Clock;
  readonly reserve: DiskReserve;
  /** What held up an erasure whose rows are gone: the job finishes it. */
  readonly onFault: (error: unknown) => void;
}

export interface EraseRequest {
  readonly tenant: ConsentTenant;
  readonly target: ErasureTarget;
  readonly requestedBy: Requester;
  readonly actor: Actor;
  readonly keep: Keep;
  /** The receipt of an erasure that a restore took back: applied again, under its own name and date. */
  readonly again?: { readonly receiptId: string; readonly subject: string; readonly erasedAt: number };
}

export const KEEP_NOTHING: Keep = { openContests: false, override: false };
/** The job leaves alone what a request is still at work on. */
const UNDER_WAY_MS = MINUTE;

function refsOf(tenant: ConsentTenant, target: ErasureTarget): TombstoneRef[] {
  const of = (kind: 'durable' | 'request') => (id: string) => ({
    kind,
    ref: rightsRef(tenant.rightsKey, kind, id),
  });
  return [
    ...target.durables.map(of('durable')),
    ...target.requests.map(of('request')),
    ...(target.principal === null ? [] : [{ kind: 'principal' as const, ref: target.principal.ref }]),
  ];
}

/** One reference for the receipt, whatever named the subject. */
function subjectRef(tenant: ConsentTenant, target: ErasureTarget): string {
  const { principal, durables, requests, linksOf } = target;
  if (durables[0] !== undefined) return rightsRef(tenant.rightsKey, 'durable', durables[0]);
  const person = principal?.ref ?? linksOf;
  if (person !== null) return rightsRef(tenant.rightsKey, 'principal', person);
  return rightsRef(tenant.rightsKey, 'request', requests[0] ?? 'nobody');
}

function receiptOf(erasure: StoredErasure): ErasureReceipt {
  return {
    receiptId: erasure.receiptId,
    tenant: erasure.kid,
    subject: erasure.subject,
    requestedBy: erasure.requestedBy,
    erasedAt: isoTime(erasure.erasedAt),
    scopes: erasure.scopes,
    incomplete: isIncomplete(erasure.scopes),
  };
}

async function eraseAll(deps: EraseDeps, request: EraseRequest, now: number) {
  const { database } = deps;
  const { tenant, target, actor, requestedBy } = request;
  const { kid } = tenant;
  const refs = refsOf(tenant, target);
  const subject = request.again?.subject ?? subjectRef(tenant, target);
  // Before the transaction: a read inside it waits for a second connection of a pool that others wait for too.
  const backups = await countBackups(database);
  return database.transaction(async (tx) => {
    // Sealing the hour takes this lock too.
    await lockHead(tx, kid);
    const { durables, requests, linksOf, principal } = target;
    const requestRef = (id: string): string => rightsRef(tenant.rightsKey, 'request', id);
    const rows = await eraseRows(
      tx,
      { kid, durables, requests, linksOf, requestRef, keep: request.keep, requestedBy },
      now,
    );
    const consent = { erased: 0, retained: 0 };
    if (principal !== null) {
      const notify = (seq: number) =>
        notifications(tenant, 'subject.erased', { subject: principal.ref, seq });
      const shred = {
        kid,
        principal: principal.ref,
        principalId: principal.id,
        wrapKey: tenant.principalWrap,
      };
      consent.erased = (await shredWithin(tx, { ...shred, notify }, now)).openings;
    } else if (linksOf !== null) {
      const kept = await tx('consent_openings').where({ kid, principal: linksOf }).count({ n: '*' });
      consent.retained = Number(kept[0]?.['n'] ?? 0);
    }
    const found: ScopeCounts = { ...rows.counts, consent: { ...consent, basis: CONSENT_BASIS } };
    const erasedSomething = Object.values(found).some(({ erased }) => erased > 0);
    // Without a tombstone a restore applies nothing again.
    const buries = erasedSomething || rows.waits;
    const copies = buries ? backups : 0;
    const scopes = scopeResults({
      ...found,
      backups: { erased: 0, retained: copies, basis: BACKUP_BASIS },
    });
    const erasure: StoredErasure = {
      receiptId: request.again?.receiptId ?? `era_${makeUlid(() => now, randomBytes)}`,
      kid,
      subject,
      requestedBy,
      erasedAt: request.again?.erasedAt ?? now,
      scopes: asPending(scopes),
      refs,
      keep: request.keep,
      step: buries ? (request.again ? 'logged' : 'rows') : 'done',
    };
    await insertErasure(tx, erasure);
    const detail = {
      receiptId: erasure.receiptId,
      scopes: scopes.filter((s) => s.count > 0).map((s) => s.scope),
    };
    await writeAudit(tx, { kid, at: now, actor, action: 'subject.erased', object: subject, detail });
    return { erasure, rows };
  });
}

/** One line for whatever was written: how many copies still lie about, only the operator knows. */
async function countBackups(database: Database): Promise<number> {
  return (await readMeta(database, LAST_BACKUP)) === null ? 0 : 1;
}

/** The tombstone, outside the database. */
async function bury(deps: EraseDeps, erasure: StoredErasure): Promise<StoredErasure> {
  if (erasure.step !== 'rows') return erasure;
  await appendTombstone(deps.dataDir, erasure);
  const logged: StoredErasure = { ...erasure, step: 'logged' };
  await saveErasureStep(deps.database, erasure.receiptId, logged);
  return logged;
}

async function complete(deps: EraseDeps, erasure: StoredErasure): Promise<StoredErasure> {
  const done: StoredErasure = { ...erasure, step: 'done', scopes: asErased(erasure.scopes) };
  await saveErasureStep(deps.database, erasure.receiptId, done);
  return done;
}

function needlesOf(rows: ErasedRows): Needles {
  return { requests: new Set(rows.requests), others: [...rows.devices, ...rows.visitorIds] };
}

export type EraseService = ReturnType<typeof makeEraseService>;

export function makeEraseService(deps: EraseDeps) {
  const { database, clock } = deps;
  const cleaner = makeCleaner(deps);
  return {
    /** The receipt is incomplete while something else holds the files open, or up; a job finishes it. */
    erase: (request: EraseRequest): Promise<ErasureReceipt> =>
      deps.reserve.during(async (attempt) => {
        const { erasure, rows } = await attempt(() => eraseAll(deps, request, clock()));
        if (erasure.step === 'done') return receiptOf(erasure);
        try {
          const buried = await attempt(() => bury(deps, erasure));
          const clean = await cleaner.submit(needlesOf(rows));
          return receiptOf(clean ? await attempt(() => complete(deps, buried)) : buried);
        } catch (error) {
          // The rows are gone, and nobody may be told that nothing was done.
          deps.onFault(error);
          return receiptOf(erasure);
        }
      }),
    async status(receiptId: string): Promise<ErasureReceipt | null> {
      const found = await findErasure(database, receiptId);
      return found && receiptOf(found);
    },
    /** Newest first. */
    async list(kid: string, limit: number): Promise<readonly ErasureReceipt[]> {
      return (await listErasures(database, kid, limit)).map(receiptOf);
    },
    /** Finishes what is not finished, after a crash too; the files are written anew once for all of them. */
    resume: (before = clock()): Promise<readonly ErasureReceipt[]> =>
      deps.reserve.during(async (attempt) => {
        const waiting = await unfinishedErasures(database, before);
        const buried: StoredErasure[] = [];
        for (const erasure of waiting) buried.push(await attempt(() => bury(deps, erasure)));
        const clean = buried.length > 0 && (await cleaner.submit(null));
        const finished: StoredErasure[] = [];
        for (const erasure of buried)
          finished.push(clean ? await attempt(() => complete(deps, erasure)) : erasure);
        return finished.map(receiptOf);
      }),
    /** The same for what no request is at work on any more. */
    resumeStale() {
      return this.resume(clock() - UNDER_WAY_MS);
    },
  };
}
