import { rightsRef, writeAudit } from '../../audit/audit-store.ts';
import type { PrincipalSession } from '../../auth/credentials.ts';
import { countOpenings } from '../../consent/append-store.ts';
import type { Database } from '../../db/engine.ts';
import { LAST_BACKUP, readMeta } from '../../db/meta-store.ts';
import type { Actor } from '../../lib/act.ts';
import { type Clock, MINUTE, SECOND } from '../../lib/clock.ts';
import { createUlid, type Random } from '../../lib/crypto.ts';
import type { JobFault } from '../../lib/jobs.ts';
import { createAnchoredPlaces } from '../../log/anchors-store.ts';
import { lockHead } from '../../log/entries-store.ts';
import { inTurn } from '../../log/head-queue-store.ts';
import { webhookRows } from '../../notify/notify-service.ts';
import type { ErasureReceipt } from '../../schema/rights.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import type { Tx } from '../contests/service.ts';
import { type CleanDeps, createCleaner } from './clean-service.ts';
import { appendTombstone, type ErasureLogAccess } from './erasure-log-service.ts';
import {
  consentCount,
  decisionRefs,
  type ErasureTarget,
  erasesAny,
  type Keep,
  leftRef,
  markPending,
  NOTHING,
  type Requester,
  refsOf,
  type ScopeCounts,
  scopeResults,
  subjectRef,
  withCopies,
} from './erasure-service.ts';
import { type LeftDevice, type RowTarget, readLeftDevices, readTargetSize } from './find-store.ts';
import {
  type ErasurePage,
  findErasure,
  incompleteErasures,
  insertErasure,
  listErasures,
  receiptOf,
  receiptOfRequest,
  type StoredErasure,
  saveProgress,
  UNFINISHED,
} from './receipts-store.ts';
import { countRows, type DeletedBytes, deletePages, type Erased, eraseRows } from './rows-store.ts';
import { shredWithin } from './shred-store.ts';

/**
 * Erasure (GDPR article 17, contract 6.4). One transaction deletes the rows, shreds the consent evidence and
 * writes the receipt: the erasure is open. Then a line outside the database tells a restore: it is logged.
 * Requests that are too many for one transaction follow in pages, and the files are searched for left bytes:
 * it is done.
 */

/** The acts on an erasure. {@link planErasure} counts the rows that one would delete. */
export interface EraseService {
  /**
   * Erases. The receipt is incomplete while pages remain or something holds the files open; a job finishes
   * it.
   * @throws {Unavailable} nothing was deleted: too many wait for the tenant's log, or the database cannot be
   * written now
   */
  erase(request: EraseRequest): Promise<ErasureReceipt>;
  /** Reads a receipt. @returns null for an unknown one @throws {UnreadableErasure} its row is damaged */
  status(receiptId: string): Promise<ErasureReceipt | null>;
  /** The receipts of a tenant, newest first. A damaged row is an id in `unreadable`, and no error. */
  list(
    kid: string,
    page: ErasurePage,
  ): Promise<
    Record<'unreadable' | 'ids', readonly string[]> & { readonly receipts: readonly ErasureReceipt[] }
  >;
  /**
   * Finishes what is not finished, for an operator: rewrites the file now, whatever its size, if it has to
   * be.
   */
  resume(onProgress?: (done: number, total: number) => void): Promise<Resumed>;
  /** Finishes erasures for a job, except those that began in the last minute. */
  resumeStale(): Promise<Resumed>;
  /** Gives free pages of the file back, while nothing searches it. */
  releasePages(): Promise<void>;
  /** Stops between two transactions; the next start continues. */
  stop(): Promise<void>;
}

/** An erasure that fails stops no other: its error is among `failures`, and it is retried next time. */
interface Resumed {
  readonly receipts: readonly ErasureReceipt[];
  readonly failures: readonly JobFault[];
}

export interface EraseRequest {
  readonly tenant: Tenant;
  readonly target: ErasureTarget;
  readonly requestedBy: Requester;
  readonly actor: Actor;
  readonly keep: Keep;
  /**
   * A stranger may ask again and again: a repeated request since this moment (epoch milliseconds) that erases
   * nothing new is answered with the earlier receipt, and leaves no audit row and no line.
   */
  readonly once?: number;
  /** The receipt of an erasure that a restore took back: applied again, under its own name and date. */
  readonly again?: { readonly receiptId: string; readonly subject: string; readonly erasedAt: number };
}

export const KEEP_NOTHING: Keep = { openContests: false, override: false };

export interface EraseDeps extends ErasureLogAccess, Pick<CleanDeps, 'rewriteWindow' | 'largeFile'> {
  readonly database: Database;
  readonly clock: Clock;
  readonly random: Random;
  readonly tenantOf: (kid: string) => Tenant | undefined;
  /** Gets the error that stopped an erasure after its rows were deleted; a job finishes it. */
  readonly onFault: (error: unknown) => void;
  /** Milliseconds that an answer waits for pages and the search before it says `pending`. */
  readonly patienceMs?: number;
  /** An erasure of more requests than this leaves them to pages. */
  readonly largeAbove?: number;
}

interface Run extends EraseDeps {
  readonly cleaner: ReturnType<typeof createCleaner>;
  /** False once the process is stopping. */
  readonly shouldContinue: () => boolean;
}

const PATIENCE_MS = 2 * SECOND;
/** One transaction deletes this many in about the time of a few group commits. */
const LARGE_ABOVE = 500;

/**
 * Erases from the request to the receipt.
 * @param answerEarly answers with the receipt as it is, before the rest has finished
 */
async function erase(
  run: Run,
  request: EraseRequest,
  receiptId: string,
  answerEarly: (receipt: ErasureReceipt) => void,
): Promise<ErasureReceipt> {
  const { database, patienceMs = PATIENCE_MS } = run;
  const firstStep = await inTurn(database, request.tenant.kid, () => begin(run, request, receiptId));
  const { deletedBytes } = firstStep;
  let { erasure } = firstStep;
  if (deletedBytes === null) return receiptOf(erasure);
  let timer: NodeJS.Timeout | undefined;
  try {
    erasure = await writeLine(run, erasure);
    if (Number.isFinite(patienceMs)) timer = setTimeout(answerEarly, patienceMs, receiptOf(erasure));
    erasure = await deletePages(run, erasure, deletedBytes);
    erasure = await run.cleaner.search(erasure, { needles: deletedBytes });
  } catch (error) {
    // The rows are deleted, and nobody may be told that nothing was done.
    run.onFault(error);
  } finally {
    clearTimeout(timer);
  }
  return receiptOf(erasure);
}

interface Begun {
  readonly erasure: StoredErasure;
  /** Null: nothing is left to do, as nothing was deleted, or a repeated request gets the earlier receipt. */
  readonly deletedBytes: DeletedBytes | null;
}

/**
 * Deletes the rows and writes the receipt. Inside its transaction nothing reads on another connection: both
 * would wait for one pool.
 */
async function begin(run: Run, request: EraseRequest, receiptId: string): Promise<Begun> {
  const { database, clock, largeAbove = LARGE_ABOVE } = run;
  const { principal: _, ...ids } = request.target;
  const { tenant, keep } = request;
  const target: RowTarget = { ...ids, kid: tenant.kid, keep, ...decisionRefs(tenant, clock) };
  const leftDevices = await readLeftDevices(database.read, target);
  const backups = await countBackups(database);
  const size = await readTargetSize(database.read, target, largeAbove);
  const places = size && createAnchoredPlaces(target.kid, size.ids);
  await places?.prepare(database.read, size?.hours ?? []);
  return database.transaction(async (tx) => {
    // Anchoring the hour takes this lock too.
    await lockHead(tx, target.kid);
    const rows = await eraseRows(tx, target, places ? { places } : { leftTo: receiptId });
    // The time is read behind the lock: a hold that this erasure met is older than its receipt.
    const now = clock();
    const shredded = await shredConsent(tx, request, now);
    const facts = { receiptId, now, rows, leftDevices, backups, hasPages: places === null };
    return writeReceipt(tx, request, shredded, facts);
  });
}

/**
 * Shreds the consent evidence of a named principal; that of a principal whose links alone are deleted is
 * counted and stays.
 */
async function shredConsent(tx: Tx, { tenant, target }: EraseRequest, now: number) {
  const { kid, principalWrap: wrapKey, stateMac } = tenant;
  const { principal, linksOf } = target;
  if (principal === null) {
    const openings = linksOf === null ? 0 : await countOpenings(tx, kid, linksOf);
    return { consent: consentCount(target, openings), secrets: [] };
  }
  const { ref, id: principalId } = principal;
  const notify = (seq: number) => webhookRows(tenant, 'subject.erased', { subject: ref, seq });
  const shred = { kid, principal: ref, principalId, wrapKey, stateMac, notify };
  const { openings, secrets } = await shredWithin(tx, shred, now);
  return { consent: consentCount(target, openings), secrets };
}

interface Facts {
  readonly receiptId: string;
  readonly now: number;
  readonly rows: Erased;
  readonly leftDevices: readonly LeftDevice[];
  /** Number of backups that the receipt names. */
  readonly backups: number;
  /** The requests are left to pages. */
  readonly hasPages: boolean;
}

async function writeReceipt(
  tx: Tx,
  request: EraseRequest,
  { consent, secrets }: Awaited<ReturnType<typeof shredConsent>>,
  { receiptId, now, rows, leftDevices, backups, hasPages }: Facts,
): Promise<Begun> {
  const { tenant, target, actor, requestedBy, keep, again } = request;
  const { kid, rightsKey } = tenant;
  const counts: ScopeCounts = { ...rows.counts, consent };
  const erases = hasPages || erasesAny(counts);
  const heldRefs = rows.heldDevices.map((durable) => rightsRef(rightsKey, 'durable', durable));
  const hasLine = erases || heldRefs.length > 0;
  const results = scopeResults(withCopies(counts, erases, hasLine ? backups : 0));
  const subject = again?.subject ?? subjectRef(rightsKey, target);
  const earlier = erases ? null : await earlierReceipt(tx, request, subject);
  if (earlier) return { erasure: earlier, deletedBytes: null };
  const erasedAt = again?.erasedAt ?? now;
  const scopes = markPending(results, hasPages);
  const erasure: StoredErasure = {
    ...{ receiptId, kid, subject, requestedBy, erasedAt, keep, scopes },
    refs: refsOf(rightsKey, target),
    ...(heldRefs.length > 0 && { held: heldRefs }),
    state: !hasLine ? 'done' : again ? 'logged' : 'open',
    filesCleanAt: hasLine ? null : erasedAt,
  };
  const leftRefs = leftDevices.map((device) => leftRef(rightsKey, device));
  await insertErasure(tx, erasure, leftRefs);
  const touchedScopes = scopes.filter(({ action }) => action !== 'none').map(({ scope }) => scope);
  const detail = { receiptId, scopes: touchedScopes };
  await writeAudit(tx, { kid, at: now, actor, action: 'subject.erased', object: subject, detail });
  const deletedBytes = { requests: new Set(rows.requests), others: new Set([...rows.others, ...secrets]) };
  return { erasure, deletedBytes: hasLine ? deletedBytes : null };
}

/** Finds the receipt of the first of several equal requests; null: this is the first. */
async function earlierReceipt(tx: Tx, { tenant, target, once: since }: EraseRequest, subject: string) {
  const [request] = target.requests;
  if (since === undefined || request === undefined) return null;
  const { kid, rightsKey } = tenant;
  return receiptOfRequest(tx, { kid, subject, ref: rightsRef(rightsKey, 'request', request), since });
}

/** Writes the line outside the database. */
async function writeLine(run: Run, erasure: StoredErasure): Promise<StoredErasure> {
  if (erasure.state !== 'open') return erasure;
  await appendTombstone(run, erasure);
  return saveProgress(run.database, erasure, { state: 'logged' });
}

/** The job leaves alone an erasure that its request may still be working on. */
const UNDER_WAY_MS = MINUTE;

/** The unfinished erasures that a job resumes, and whether it may rewrite the file now. */
interface ResumeScope {
  /** Erasures that began no later. */
  readonly before: number;
  readonly rewriteNow: boolean;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/** Finishes erasures that a crash, a full disk or a busy file interrupted. */
async function resumeAll(
  run: Run,
  isUnderWay: (receiptId: string) => boolean,
  { before, rewriteNow, onProgress }: ResumeScope,
): Promise<Resumed> {
  const { database, cleaner } = run;
  const failures: JobFault[] = [];
  const attempt = async <T>(kid: string, work: () => Promise<T>): Promise<T | null> => {
    try {
      return await work();
    } catch (error) {
      failures.push({ kid, error });
      return null;
    }
  };
  // The file of a database that came from PostgreSQL, where it waited for a scrub, is searched as any other.
  const states = database.kind === 'sqlite' ? ([...UNFINISHED, 'done'] as const) : UNFINISHED;
  const { erasures, unreadable } = await incompleteErasures(database, states, before);
  failures.push(...unreadable.map((error) => ({ kid: error.kid, error })));
  const deleted: StoredErasure[] = [];
  const waiting = erasures.filter(({ receiptId }) => !isUnderWay(receiptId));
  for (const [place, erasure] of waiting.entries()) {
    onProgress?.(place, waiting.length);
    const at = await attempt(erasure.kid, async () => deletePages(run, await writeLine(run, erasure), null));
    if (at) deleted.push(at);
  }
  // Submitted together, so that one search of the file serves all of them.
  const runs = deleted.map((at) =>
    attempt(at.kid, async () => receiptOf(await cleaner.search(at, { rewriteNow }))),
  );
  return { receipts: (await Promise.all(runs)).filter((receipt) => receipt !== null), failures };
}

export function createEraseService(deps: EraseDeps): EraseService {
  const { database, clock } = deps;
  const underWay = new Map<string, Promise<unknown>>();
  let stopping = false;
  const cleaner = createCleaner({ ...deps, isStopping: () => stopping });
  const run: Run = { ...deps, cleaner, shouldContinue: () => !stopping };
  const resume = (scope: ResumeScope) => resumeAll(run, (receiptId) => underWay.has(receiptId), scope);
  return {
    erase(request) {
      const receiptId = request.again?.receiptId ?? `era_${createUlid(clock, deps.random)}`;
      return new Promise<ErasureReceipt>((answer, refuse) => {
        const outcome = erase(run, request, receiptId, answer).then(answer, refuse);
        underWay.set(
          receiptId,
          outcome.finally(() => underWay.delete(receiptId)),
        );
      });
    },
    async status(receiptId) {
      const erasure = await findErasure(database.read, receiptId);
      return erasure && receiptOf(erasure);
    },
    async list(kid, page) {
      const { erasures, unreadable, ids } = await listErasures(database, kid, page);
      const damaged = unreadable.map(({ receiptId }) => receiptId);
      return { receipts: erasures.map(receiptOf), unreadable: damaged, ids };
    },
    resume: (onProgress) => resume({ before: clock(), rewriteNow: true, onProgress }),
    resumeStale: () => resume({ before: clock() - UNDER_WAY_MS, rewriteNow: false }),
    releasePages: cleaner.releasePages,
    async stop() {
      stopping = true;
      await Promise.all(underWay.values());
    },
  };
}

/** Erases the consent evidence and the links of a principal, who asks in its own session. */
export const eraseOwn =
  (eraser: EraseService) =>
  (tenant: EraseRequest['tenant'], { principal, principalId }: PrincipalSession): Promise<ErasureReceipt> =>
    eraser.erase({
      tenant,
      target: { ...NOTHING, principal: { ref: principal, id: principalId }, linksOf: principal },
      requestedBy: 'subject',
      actor: { role: 'subject', ref: rightsRef(tenant.rightsKey, 'principal', principal) },
      keep: KEEP_NOTHING,
    });

/** Counts what an erasure would delete now, by short reads: they wait for no writer and hold none up. */
export async function planErasure(
  database: Database,
  { kid, target, keep }: { readonly kid: string; readonly target: ErasureTarget; readonly keep: Keep },
): Promise<ScopeCounts> {
  const { linksOf, principal } = target;
  const rows = await countRows(database.read, { ...target, kid, keep, requestRef: String });
  const principalRef = principal?.ref ?? linksOf;
  const openings = principalRef === null ? 0 : await countOpenings(database.read, kid, principalRef);
  const counts = { ...rows.counts, consent: consentCount(target, openings) };
  const erases = erasesAny(counts);
  return withCopies(counts, erases, erases || rows.heldDevices.length > 0 ? await countBackups(database) : 0);
}

/** The receipt has one line for all backups, because only the operator knows how many copies still exist. */
async function countBackups(database: Database): Promise<number> {
  return (await readMeta(database, LAST_BACKUP)) === null ? 0 : 1;
}
