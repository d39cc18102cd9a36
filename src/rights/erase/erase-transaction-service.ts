import { rightsRef } from '../../audit/reference.ts';
import { writeAudit } from '../../audit/store.ts';
import { countOpenings } from '../../consent/principals-store.ts';
import { notifications } from '../../consent/service.ts';
import type { ConsentTenant } from '../../consent/tenant.ts';
import type { Database } from '../../db/db.ts';
import { LAST_BACKUP, readMeta } from '../../db/meta-store.ts';
import type { Actor } from '../../lib/act.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import { lockHead } from '../../log/append-store.ts';
import { makeAnchoredPlaces } from '../../log/verdict-anchor-store.ts';
import type { Tx } from '../contests/change-service.ts';
import {
  asMarked,
  asPending,
  consentCount,
  type ErasureTarget,
  erasesAny,
  type Keep,
  type Requester,
  type ScopeCount,
  type ScopeCounts,
  scopeResults,
  withCopies,
} from './erasure.ts';
import { type RowTarget, sizeUp } from './find-store.ts';
import { shredWithin } from './principal-store.ts';
import { insertErasure, receiptOfRequest, type StoredErasure, type TombstoneRef } from './receipts-store.ts';
import { dropStaged, type Staged, stageTarget } from './stage-store.ts';
import { markStaged } from './steps-store.ts';
import { countRows, type ErasedRows, eraseRows } from './store.ts';

/** The transaction of an erasure: the rows, the consent, the receipt and its audit row. */

export interface EraseRequest {
  readonly tenant: ConsentTenant;
  readonly target: ErasureTarget;
  readonly requestedBy: Requester;
  readonly actor: Actor;
  readonly keep: Keep;
  /**
   * A stranger may ask again and again: since this moment (epoch milliseconds) what erases nothing new is answered with
   * the receipt that is there, and leaves no audit row or tombstone.
   */
  readonly once?: number;
  /** The receipt of an erasure that a restore took back: applied again, under its own name and date. */
  readonly again?: { readonly receiptId: string; readonly subject: string; readonly erasedAt: number };
}

export interface BeginDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly random: Random;
  /** An erasure of more requests than this is large: its rows are marked and deleted in steps. */
  readonly largeAbove?: number;
}

/** One transaction deletes this many in about the time of a few group commits. */
const LARGE_ABOVE = 500;

export type Begun = Awaited<ReturnType<typeof eraseWithin>>;

/** How one transaction erases, with what was read before it. */
interface Plan {
  readonly receiptId: string;
  readonly now: number;
  /** How many backups the receipt names. */
  readonly backups: number;
  readonly erase: (tx: Tx) => Promise<ErasedRows>;
  /** The rows are only marked; steps delete them after this transaction. */
  readonly marks: boolean;
}

function rowTargetOf({ tenant, target, keep, requestedBy }: EraseRequest): RowTarget {
  const { principal: _, ...rows } = target;
  const requestRef = (id: string): string => rightsRef(tenant.rightsKey, 'request', id);
  return { ...rows, kid: tenant.kid, requestRef, keep, requestedBy };
}

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

interface Shredded {
  readonly consent: ScopeCount;
  /** Deleted keys, salts and encrypted ids, as they were stored. */
  readonly secrets: readonly string[];
}

async function shredConsent(tx: Tx, { tenant, target }: EraseRequest, now: number): Promise<Shredded> {
  const { kid } = tenant;
  const { principal, linksOf } = target;
  if (principal !== null) {
    const { ref, id: principalId } = principal;
    const notify = (seq: number) => notifications(tenant, 'subject.erased', { subject: ref, seq });
    const { principalWrap: wrapKey, stateMac } = tenant;
    const shred = { kid, principal: ref, principalId, wrapKey, stateMac, notify };
    const { openings, secrets } = await shredWithin(tx, shred, now);
    return { consent: consentCount(target, openings), secrets };
  }
  const openings = linksOf === null ? 0 : await countOpenings(tx, kid, linksOf);
  return { consent: consentCount(target, openings), secrets: [] };
}

/** The receipt of the first of several equal requests; null where this one erased something, or is the first. */
async function earlierReceipt(
  tx: Tx,
  { tenant, target, once: since }: EraseRequest,
  { subject, counts }: { readonly subject: string; readonly counts: ScopeCounts },
): Promise<StoredErasure | null> {
  const [request] = target.requests;
  const isNew = Object.values(counts).some(({ erased }) => erased > 0);
  if (since === undefined || request === undefined || isNew) return null;
  const { kid, rightsKey } = tenant;
  return receiptOfRequest(tx, { kid, subject, ref: rightsRef(rightsKey, 'request', request), since });
}

async function eraseWithin(tx: Tx, request: EraseRequest, plan: Plan) {
  const { receiptId, now, backups, erase, marks } = plan;
  const { tenant, target, actor, requestedBy, keep, again } = request;
  const { kid } = tenant;
  // Anchoring the hour takes this lock too.
  await lockHead(tx, kid);
  const rows = await erase(tx);
  const { consent, secrets } = await shredConsent(tx, request, now);
  const counts: ScopeCounts = { ...rows.counts, consent };
  const erases = marks || erasesAny(counts);
  // Without a tombstone a restore applies nothing again.
  const buries = erases || rows.waits;
  const scopes = scopeResults(withCopies(counts, erases, buries ? backups : 0));
  const subject = again?.subject ?? subjectRef(tenant, target);
  const first = marks ? 'marked' : 'rows';
  const erasure: StoredErasure = {
    receiptId,
    kid,
    subject,
    requestedBy,
    keep,
    refs: refsOf(tenant, target),
    erasedAt: again?.erasedAt ?? now,
    scopes: marks ? asMarked(scopes) : asPending(scopes),
    step: buries ? (again ? WITH_TOMBSTONE[first] : first) : 'done',
  };
  const earlier = marks ? null : await earlierReceipt(tx, request, { subject, counts });
  if (earlier) return { erasure: { ...earlier, step: 'done' as const }, rows, secrets };
  await insertErasure(tx, erasure);
  const detail = { receiptId, scopes: scopes.filter((s) => s.count > 0).map((s) => s.scope) };
  await writeAudit(tx, { kid, at: now, actor, action: 'subject.erased', object: subject, detail });
  return { erasure, rows, secrets };
}

/** The step that follows once the tombstone is on disk. */
export const WITH_TOMBSTONE = { marked: 'deleting', rows: 'logged' } as const;

/** One line for all backups: only the operator knows how many copies still exist. */
async function countBackups(database: Database): Promise<number> {
  return (await readMeta(database, LAST_BACKUP)) === null ? 0 : 1;
}

/** The first transaction. What it needs is read before it: a read inside would wait for a second connection of the pool. */
export async function begin(deps: BeginDeps, request: EraseRequest, receiptId: string) {
  const { database, largeAbove = LARGE_ABOVE } = deps;
  const now = deps.clock();
  const target = rowTargetOf(request);
  const known = { receiptId, now, backups: await countBackups(database) };
  const run = (how: Pick<Plan, 'erase' | 'marks'>): Promise<Begun> =>
    database.transaction((tx) => eraseWithin(tx, request, { ...known, ...how }));
  const size = await sizeUp(database.read, target, largeAbove);
  if (size !== null) {
    const places = makeAnchoredPlaces(target.kid, size.ids);
    await places.prepare(database.read, size.hours);
    return run({ erase: (tx) => eraseRows(tx, target, places), marks: false });
  }
  const staged: Staged = { receiptId, target, at: now, requests: new Map(), withoutDecision: new Set() };
  try {
    await stageTarget(database, staged);
    return await run({ erase: (tx) => markStaged(tx, staged), marks: true });
  } catch (error) {
    await dropStaged(database, receiptId).catch(() => {});
    throw error;
  }
}

/** The counts of an erasure if it were asked for now. Short reads: they wait for no writer and hold none up. */
export async function planErasure(
  database: Database,
  { kid, target, keep }: { readonly kid: string; readonly target: ErasureTarget; readonly keep: Keep },
): Promise<ScopeCounts> {
  const { linksOf, principal } = target;
  const { read } = database;
  const rows = await countRows(read, { ...target, kid, keep });
  const who = principal?.ref ?? linksOf;
  const openings = who === null ? 0 : await countOpenings(read, kid, who);
  const counts = { ...rows.counts, consent: consentCount(target, openings) };
  const erases = erasesAny(counts);
  return withCopies(counts, erases, erases || rows.waits ? await countBackups(database) : 0);
}
