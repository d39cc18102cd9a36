import { rightsRef, writeAudit } from '../../audit/audit-store.ts';
import type { PrincipalSession } from '../../auth/credentials.ts';
import { countOpenings } from '../../consent/append-store.ts';
import type { Database } from '../../db/engine.ts';
import { inPieces } from '../../db/purge.ts';
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
  hasFailed,
  isIncomplete,
  type Keep,
  leftRef,
  markComplete,
  markFailed,
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
import { countBackups } from './plan-service.ts';
import {
  addCounts,
  erasuresAt,
  findErasure,
  insertErasure,
  listErasures,
  receiptOf,
  receiptOfRequest,
  type StoredErasure,
  saveErasureStep,
  UNFINISHED,
} from './receipts-store.ts';
import { type Erased, endPages, erasePage, eraseRows, hasPages, pagesLeft, placesOf } from './rows-store.ts';
import { shredWithin } from './shred-store.ts';

/**
 * Erasure (GDPR article 17, contract 6.4): from the request to the receipt. One transaction deletes the rows, shreds the consent
 * evidence and writes the receipt; then a line outside the database tells a restore; then the files are searched for left bytes. An
 * erasure of more requests than one transaction should delete leaves those to steps, and its receipt says `pending` meanwhile.
 */

export interface EraseRequest {
  readonly tenant: Tenant;
  readonly target: ErasureTarget;
  readonly requestedBy: Requester;
  readonly actor: Actor;
  readonly keep: Keep;
  /**
   * A stranger may ask again and again: a repeated request since this moment (epoch milliseconds) that erases nothing new is answered
   * with the earlier receipt, and leaves no audit row and no line.
   */
  readonly once?: number;
  /** The receipt of an erasure that a restore took back: applied again, under its own name and date. */
  readonly again?: { readonly receiptId: string; readonly subject: string; readonly erasedAt: number };
}

export interface EraseDeps extends ErasureLogAccess, Pick<CleanDeps, 'rewriteWindow' | 'largeFile'> {
  readonly database: Database;
  readonly clock: Clock;
  readonly random: Random;
  readonly tenantOf: (kid: string) => Tenant | undefined;
  /** Gets the error that stopped an erasure after its rows were deleted; a job finishes it. */
  readonly onFault: (error: unknown) => void;
  /** Milliseconds that an answer waits for steps and the search before it says `pending`. */
  readonly patienceMs?: number;
  /** An erasure of more requests than this is done in steps. */
  readonly largeAbove?: number;
}

export const KEEP_NOTHING: Keep = { openContests: false, override: false };
/** The job leaves alone what a request is still at work on. */
const UNDER_WAY_MS = MINUTE;
const PATIENCE_MS = 2 * SECOND;
/** One transaction deletes this many in about the time of a few group commits. */
const LARGE_ABOVE = 500;
/** Requests of a later transaction, at least: each costs a dozen statements, however few rows it has. */
const PIECE_ROWS = 100;

interface Run extends EraseDeps {
  readonly cleaner: ReturnType<typeof createCleaner>;
  /** False once the process is stopping. */
  readonly shouldContinue: () => boolean;
}

/** The unfinished erasures that a job resumes, and whether it may rewrite the file now. */
interface ResumeScope {
  /** Erasures that began no later. */
  readonly before: number;
  readonly rewriteNow: boolean;
}
type SearchScope = { readonly needles: DeletedBytes } | Pick<ResumeScope, 'rewriteNow'>;

/** Bytes that no file may hold any more. Null: nobody knows them after a crash, and only rewriting the file is sure. */
type DeletedBytes = { readonly requests: Set<string>; readonly others: Set<string> } | null;

/** @param answerEarly gives the receipt as it is to the caller that waits, before the rest has finished */
async function erase(
  run: Run,
  request: EraseRequest,
  receiptId: string,
  answerEarly: (receipt: ErasureReceipt) => void,
): Promise<ErasureReceipt> {
  const target = rowTargetOf(run, request);
  const { erasure, deletedBytes } = await inTurn(run.database, target.kid, () =>
    deleteRows(run, request, target, receiptId),
  );
  if (erasure.step === 'done') return receiptOf(erasure);
  let timer: NodeJS.Timeout | undefined;
  let at = erasure;
  try {
    at = await writeLine(run, at);
    const { patienceMs = PATIENCE_MS } = run;
    if (Number.isFinite(patienceMs)) timer = setTimeout(answerEarly, patienceMs, receiptOf(at));
    at = await deletePages(run, at, deletedBytes);
    at = await searchFiles(run, at, { needles: deletedBytes });
  } catch (error) {
    // The rows are gone, and nobody may be told that nothing was done.
    run.onFault(error);
  } finally {
    clearTimeout(timer);
  }
  return receiptOf(at);
}

interface StartedErasure {
  readonly erasure: StoredErasure;
  readonly deletedBytes: NonNullable<DeletedBytes>;
}

/** The first transaction. It reads on no other connection: that would wait for a second connection of the pool. */
async function deleteRows(
  deps: Run,
  request: EraseRequest,
  target: RowTarget,
  receiptId: string,
): Promise<StartedErasure> {
  const { database, largeAbove = LARGE_ABOVE } = deps;
  const leftDevices = await readLeftDevices(database.read, target);
  const receiptFacts = { receiptId, leftDevices, backups: await countBackups(database) };
  const size = await readTargetSize(database.read, target, largeAbove);
  const places = size && createAnchoredPlaces(target.kid, size.ids);
  await places?.prepare(database.read, size?.hours ?? []);
  return database.transaction(async (tx) => {
    // Anchoring the hour takes this lock too.
    await lockHead(tx, target.kid);
    const rows = await eraseRows(tx, target, places ? { places } : { leftTo: receiptId });
    // Behind the lock: a hold that this erasure met is older than its receipt.
    return writeReceipt(tx, request, { ...receiptFacts, now: deps.clock(), rows, hasLeft: places === null });
  });
}

interface ReceiptFacts {
  readonly receiptId: string;
  readonly now: number;
  readonly leftDevices: readonly LeftDevice[];
  /** Number of backups that the receipt names. */
  readonly backups: number;
  readonly rows: Erased;
  /** The requests are left to pages. */
  readonly hasLeft: boolean;
}

async function writeReceipt(tx: Tx, request: EraseRequest, deleted: ReceiptFacts): Promise<StartedErasure> {
  const { receiptId, now, backups, rows, hasLeft } = deleted;
  const { tenant, target, actor, requestedBy, keep, again } = request;
  const { kid, rightsKey } = tenant;
  const { consent, secrets } = await shredConsent(tx, request, now);
  const counts: ScopeCounts = { ...rows.counts, consent };
  const erases = hasLeft || erasesAny(counts);
  // Without a line a restore applies nothing again.
  const needsLine = erases || rows.heldDevices.length > 0;
  const scopes = scopeResults(withCopies(counts, erases, needsLine ? backups : 0));
  const subject = again?.subject ?? subjectRef(rightsKey, target);
  const heldRefs = rows.heldDevices.map((durable) => rightsRef(rightsKey, 'durable', durable));
  const deletedBytes = { requests: new Set(rows.requests), others: new Set([...rows.others, ...secrets]) };
  const erasure: StoredErasure = {
    receiptId,
    kid,
    subject,
    requestedBy,
    keep,
    refs: refsOf(rightsKey, target),
    ...(heldRefs.length > 0 && { held: heldRefs }),
    erasedAt: again?.erasedAt ?? now,
    scopes: markPending(scopes, hasLeft),
    step: needsLine ? (again ? 'logged' : 'rows') : 'done',
  };
  const earlier = erases ? null : await earlierReceipt(tx, request, subject);
  if (earlier) return { erasure: { ...earlier, step: 'done' }, deletedBytes };
  const leftRefs = deleted.leftDevices.map((device) => leftRef(rightsKey, device));
  await insertErasure(tx, erasure, leftRefs);
  const touchedScopes = erasure.scopes.filter(({ action }) => action !== 'none').map(({ scope }) => scope);
  const detail = { receiptId, scopes: touchedScopes };
  await writeAudit(tx, { kid, at: now, actor, action: 'subject.erased', object: subject, detail });
  return { erasure, deletedBytes };
}

/** The line outside the database. */
async function writeLine(deps: EraseDeps, erasure: StoredErasure): Promise<StoredErasure> {
  if (erasure.step !== 'rows') return erasure;
  await appendTombstone(deps, erasure);
  await saveErasureStep(deps.database, erasure, { step: 'logged' });
  return { ...erasure, step: 'logged' };
}

/** Deletes the requests that the first transaction left, as other nodes may do at the same time. @param deletedBytes takes what was deleted */
async function deletePages(run: Run, erasure: StoredErasure, deletedBytes: DeletedBytes) {
  const { database, shouldContinue, tenantOf, clock } = run;
  const { receiptId, kid, keep } = erasure;
  const tenant = tenantOf(kid);
  // The rows of a removed tenant are deleted with it.
  if (!tenant || !(await hasPages(database, receiptId))) return erasure;
  const target = { ...NOTHING, kid, keep, ...decisionRefs(tenant, clock) };
  const queued: Database = {
    ...database,
    transaction: (work, options) =>
      inTurn(database, kid, () => database.transaction(work, options), { mayRefuse: false }),
  };
  for await (const ids of pagesLeft(database, erasure)) {
    const places = await placesOf(database, kid, ids);
    const erasePiece = async (tx: Tx, requests: readonly string[]): Promise<number> => {
      await lockHead(tx, kid);
      const erased = await erasePage(tx, { ...target, requests }, places);
      await addCounts(tx, receiptId, erased.counts);
      for (const id of erased.requests) deletedBytes?.requests.add(id);
      for (const bytes of erased.others) deletedBytes?.others.add(bytes);
      return requests.length;
    };
    await inPieces(queued, ids, erasePiece, { minRows: PIECE_ROWS, shouldContinue });
    if (!shouldContinue()) return erasure;
  }
  await endPages(database, receiptId);
  return (await findErasure(database.read, receiptId)) ?? erasure;
}

/** The last step. A server cleans the file of SQLite alone: those of PostgreSQL wait for `gpd erase scrub`. */
async function searchFiles(run: Run, erasure: StoredErasure, scope: SearchScope): Promise<StoredErasure> {
  const { database, cleaner, clock } = run;
  const { receiptId, kid, step } = erasure;
  if (step === 'rows' || (await hasPages(database, receiptId))) return erasure;
  const request = { receiptId, kid, hasFailed: hasFailed(erasure.scopes), ...scope };
  const result = await cleaner.submit(request);
  if (result === 'waiting' || (result === 'failed' && request.hasFailed)) return erasure;
  if (result === 'failed') {
    const failure = { step, scopes: markFailed(erasure.scopes) };
    await saveErasureStep(database, erasure, failure);
    return { ...erasure, ...failure };
  }
  const scopes = markComplete(erasure.scopes, database.kind === 'sqlite');
  const end = isIncomplete(scopes)
    ? ({ step: 'scrub' } as const)
    : ({ step: 'done', doneAt: clock() } as const);
  await saveErasureStep(database, erasure, { ...end, scopes });
  return { ...erasure, ...end, scopes };
}

/** Finishes erasures that a crash, a full disk or a busy file interrupted. One that fails stops no other, and is retried next time. */
async function resumeAll(run: Run, isUnderWay: (receiptId: string) => boolean, scope: ResumeScope) {
  const { database } = run;
  const failures: JobFault[] = [];
  const attempt = async <T>(kid: string, work: () => Promise<T>): Promise<T | null> => {
    try {
      return await work();
    } catch (error) {
      failures.push({ kid, error });
      return null;
    }
  };
  // The file of a database that came from PostgreSQL is searched as any other.
  const steps = database.kind === 'sqlite' ? ([...UNFINISHED, 'scrub'] as const) : UNFINISHED;
  const { erasures, unreadable } = await erasuresAt(database, steps, scope.before);
  failures.push(...unreadable.map((error) => ({ kid: error.kid, error })));
  const deleted: StoredErasure[] = [];
  for (const erasure of erasures.filter(({ receiptId }) => !isUnderWay(receiptId))) {
    const at = await attempt(erasure.kid, async () => deletePages(run, await writeLine(run, erasure), null));
    if (at) deleted.push(at);
  }
  // Submitted together, so that one search of the file serves all of them.
  const runs = deleted.map((at) => attempt(at.kid, async () => receiptOf(await searchFiles(run, at, scope))));
  return { receipts: (await Promise.all(runs)).filter((receipt) => receipt !== null), failures };
}

export type EraseService = ReturnType<typeof createEraseService>;

export function createEraseService(deps: EraseDeps) {
  const { database, clock } = deps;
  const underWay = new Map<string, Promise<unknown>>();
  let stopping = false;
  const run: Run = {
    ...deps,
    cleaner: createCleaner({ ...deps, isStopping: () => stopping }),
    shouldContinue: () => !stopping,
  };
  const resume = (scope: ResumeScope) => resumeAll(run, (receiptId) => underWay.has(receiptId), scope);
  return {
    /** The receipt is incomplete while steps remain or something holds the files open; a job finishes it. */
    erase(request: EraseRequest): Promise<ErasureReceipt> {
      const receiptId = request.again?.receiptId ?? `era_${createUlid(clock, deps.random)}`;
      return new Promise<ErasureReceipt>((answer, refuse) => {
        const outcome = erase(run, request, receiptId, answer).then(answer, refuse);
        underWay.set(
          receiptId,
          outcome.finally(() => underWay.delete(receiptId)),
        );
      });
    },
    async status(receiptId: string): Promise<ErasureReceipt | null> {
      const erasure = await findErasure(database.read, receiptId);
      return erasure && receiptOf(erasure);
    },
    /** Newest first. `unreadable`: ids of those whose rows are damaged. */
    async list(kid: string, limit: number) {
      const { erasures, unreadable } = await listErasures(database, kid, limit);
      return { receipts: erasures.map(receiptOf), unreadable: unreadable.map(({ receiptId }) => receiptId) };
    },
    /** Finishes what is not finished, for an operator: rewrites the file now, whatever its size, if it has to be. */
    resume: () => resume({ before: clock(), rewriteNow: true }),
    /** Finishes erasures for a job, except those that began in the last minute. */
    resumeStale: () => resume({ before: clock() - UNDER_WAY_MS, rewriteNow: false }),
    releasePages: () => run.cleaner.releasePages(),
    /** Stops between two steps; the next start continues. */
    async stop(): Promise<void> {
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

function rowTargetOf({ clock }: EraseDeps, { tenant, target, keep }: EraseRequest): RowTarget {
  const { principal: _, ...rows } = target;
  return { ...rows, kid: tenant.kid, keep, ...decisionRefs(tenant, clock) };
}

/** The evidence of a principal that is named is shredded; of one whose links go it is counted and stays. */
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

/** The receipt of the first of several equal requests; null: this is the first. */
async function earlierReceipt(tx: Tx, { tenant, target, once: since }: EraseRequest, subject: string) {
  const [request] = target.requests;
  if (since === undefined || request === undefined) return null;
  const { kid, rightsKey } = tenant;
  return receiptOfRequest(tx, { kid, subject, ref: rightsRef(rightsKey, 'request', request), since });
}
