import { rightsRef } from '../../audit/audit.ts';
import { writeAudit } from '../../audit/store.ts';
import type { PrincipalSession } from '../../auth/credentials.ts';
import { countOpenings } from '../../consent/append-store.ts';
import type { Database } from '../../db/db.ts';
import { LAST_BACKUP, readMeta } from '../../db/meta-store.ts';
import { inPieces } from '../../db/purge.ts';
import type { Actor } from '../../lib/act.ts';
import { type Clock, isoTime, MINUTE, SECOND } from '../../lib/clock.ts';
import { makeUlid, type Random } from '../../lib/crypto.ts';
import type { JobFault } from '../../lib/jobs.ts';
import { makeAnchoredPlaces } from '../../log/anchors.ts';
import { lockHead } from '../../log/entries.ts';
import { webhookRows } from '../../notify/notify.ts';
import type { ErasureReceipt } from '../../schema/rights.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import type { Tx } from '../contests/service.ts';
import { type CleanDeps, makeCleaner } from './clean.ts';
import {
  asErased,
  asPending,
  asStepped,
  consentCount,
  type ErasureTarget,
  erasesAny,
  isIncomplete,
  type Keep,
  NOTHING,
  type Requester,
  refsOf,
  type ScopeCounts,
  scopeResults,
  subjectRef,
  withCopies,
} from './erasure.ts';
import { appendTombstone, type OutsideLog } from './erasure-log.ts';
import { type RowTarget, sizeUp } from './find.ts';
import {
  addStep,
  erasuresAt,
  findErasure,
  insertErasure,
  listErasures,
  receiptOfRequest,
  type StoredErasure,
  saveErasureStep,
  UNFINISHED,
} from './receipts.ts';
import {
  beginSteps,
  countRows,
  type Erased,
  endSteps,
  eraseRows,
  eraseStep,
  hasSteps,
  placesOf,
  requestsLeft,
} from './rows.ts';
import { shredWithin } from './shred.ts';

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
   * A stranger may ask again and again: since this moment (epoch milliseconds) what erases nothing new is answered with the receipt
   * that is there, and leaves no audit row and no line.
   */
  readonly once?: number;
  /** The receipt of an erasure that a restore took back: applied again, under its own name and date. */
  readonly again?: { readonly receiptId: string; readonly subject: string; readonly erasedAt: number };
}

export interface EraseDeps extends OutsideLog, Pick<CleanDeps, 'rewriteWindow' | 'largeFile'> {
  readonly database: Database;
  readonly clock: Clock;
  readonly random: Random;
  readonly tenantOf: (kid: string) => Tenant | undefined;
  /** What held up an erasure whose rows are gone: the job finishes it. */
  readonly onFault: (error: unknown) => void;
  /** How long an answer waits for steps and for the search before it says `pending`. */
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
/** Rows of a step: each costs a dozen statements, however few rows it has. */
const STEP_ROWS = 100;

interface Running extends EraseDeps {
  readonly cleaner: ReturnType<typeof makeCleaner>;
  /** False once the process is stopping. */
  readonly goesOn: () => boolean;
}

/** How a job looks for what is unfinished; how the file is searched for it. */
interface Resumed {
  /** Erasures that began no later. */
  readonly before: number;
  readonly rewriteNow: boolean;
}
type Searched = { readonly needles: Gone } | Pick<Resumed, 'rewriteNow'>;

/** Bytes that no file may hold any more. Null: nobody knows them after a crash, and only rewriting the file is sure. */
type Gone = { readonly requests: Set<string>; readonly others: Set<string> } | null;

/** @param answerEarly gives the receipt as it is to the caller that waits, before the rest has finished */
async function erase(
  run: Running,
  request: EraseRequest,
  receiptId: string,
  answerEarly: (receipt: ErasureReceipt) => void,
): Promise<ErasureReceipt> {
  const { erasure, gone } = await deleteRows(run, request, receiptId);
  if (erasure.step === 'done') return receiptOf(erasure);
  let timer: NodeJS.Timeout | undefined;
  let at = erasure;
  try {
    at = await writeLine(run, at);
    const { patienceMs = PATIENCE_MS } = run;
    if (Number.isFinite(patienceMs)) timer = setTimeout(answerEarly, patienceMs, receiptOf(at));
    at = await runSteps(run, at, gone);
    at = await searchFiles(run, at, { needles: gone });
  } catch (error) {
    // The rows are gone, and nobody may be told that nothing was done.
    run.onFault(error);
  } finally {
    clearTimeout(timer);
  }
  return receiptOf(at);
}

interface Begun {
  readonly erasure: StoredErasure;
  readonly gone: NonNullable<Gone>;
}

/** The first transaction. It reads on no other connection: that would wait for a second connection of the pool. */
async function deleteRows(deps: Running, request: EraseRequest, receiptId: string): Promise<Begun> {
  const { database, largeAbove = LARGE_ABOVE } = deps;
  const target = rowTargetOf(request);
  const known = { receiptId, backups: await countBackups(database) };
  const size = await sizeUp(database.read, target, largeAbove);
  const places = size && makeAnchoredPlaces(target.kid, size.ids);
  await places?.prepare(database.read, size?.hours ?? []);
  return database.transaction(async (tx) => {
    // Anchoring the hour takes this lock too.
    await lockHead(tx, target.kid);
    const rows = size ? await eraseRows(tx, target, places) : await beginSteps(tx, target, receiptId);
    // Behind the lock: a hold that this erasure met is older than its receipt.
    return writeReceipt(tx, request, { ...known, now: deps.clock(), rows, inSteps: size === null });
  });
}

interface Deleted {
  readonly receiptId: string;
  readonly now: number;
  /** How many backups the receipt names. */
  readonly backups: number;
  readonly rows: Erased;
  readonly inSteps: boolean;
}

async function writeReceipt(tx: Tx, request: EraseRequest, deleted: Deleted): Promise<Begun> {
  const { receiptId, now, backups, rows, inSteps } = deleted;
  const { tenant, target, actor, requestedBy, keep, again } = request;
  const { kid, rightsKey } = tenant;
  const { consent, secrets } = await shredConsent(tx, request, now);
  const counts: ScopeCounts = { ...rows.counts, consent };
  const erases = inSteps || erasesAny(counts);
  // Without a line a restore applies nothing again.
  const needsLine = erases || rows.held.length > 0;
  const scopes = scopeResults(withCopies(counts, erases, needsLine ? backups : 0));
  const subject = again?.subject ?? subjectRef(rightsKey, target);
  const held = rows.held.map((durable) => rightsRef(rightsKey, 'durable', durable));
  const gone = { requests: new Set(rows.requests), others: new Set([...rows.others, ...secrets]) };
  const erasure: StoredErasure = {
    receiptId,
    kid,
    subject,
    requestedBy,
    keep,
    refs: refsOf(rightsKey, target),
    ...(held.length > 0 && { held }),
    erasedAt: again?.erasedAt ?? now,
    scopes: inSteps ? asStepped(scopes) : asPending(scopes),
    step: needsLine ? (again ? 'logged' : 'rows') : 'done',
  };
  const earlier = inSteps || erases ? null : await earlierReceipt(tx, request, subject);
  if (earlier) return { erasure: { ...earlier, step: 'done' }, gone };
  await insertErasure(tx, erasure);
  const about = erasure.scopes.filter(({ action }) => action !== 'none').map(({ scope }) => scope);
  const detail = { receiptId, scopes: about };
  await writeAudit(tx, { kid, at: now, actor, action: 'subject.erased', object: subject, detail });
  return { erasure, gone };
}

/** The line outside the database. */
async function writeLine(deps: EraseDeps, erasure: StoredErasure): Promise<StoredErasure> {
  if (erasure.step !== 'rows') return erasure;
  await appendTombstone(deps, erasure);
  await saveErasureStep(deps.database, erasure, { step: 'logged' });
  return { ...erasure, step: 'logged' };
}

/** Deletes what a large erasure left to steps, as other nodes may do at the same time. @param gone takes what was deleted */
async function runSteps(run: Running, erasure: StoredErasure, gone: Gone): Promise<StoredErasure> {
  const { database, goesOn, tenantOf } = run;
  const { receiptId, kid } = erasure;
  if (!(await hasSteps(database, receiptId))) return erasure;
  const rightsKey = tenantOf(kid)?.rightsKey;
  // The rows of a removed tenant are deleted with it.
  if (rightsKey === undefined) return erasure;
  const requestRef = (id: string): string => rightsRef(rightsKey, 'request', id);
  for (
    let ids = await requestsLeft(database, erasure);
    ids.length > 0;
    ids = await requestsLeft(database, erasure)
  ) {
    const places = await placesOf(database, kid, ids);
    const step = async (tx: Tx, requests: readonly string[]): Promise<number> => {
      await lockHead(tx, kid);
      const erased = await eraseStep(tx, erasure, { requests, requestRef, places });
      await addStep(tx, receiptId, erased.counts);
      for (const id of erased.requests) gone?.requests.add(id);
      for (const bytes of erased.others) gone?.others.add(bytes);
      return requests.length;
    };
    await inPieces(database, ids, step, { minRows: STEP_ROWS, shouldContinue: goesOn });
    if (!goesOn()) return erasure;
  }
  await endSteps(database, receiptId);
  return (await findErasure(database.read, receiptId)) ?? erasure;
}

/** The last step. A server cleans the file of SQLite alone: those of PostgreSQL wait for `gpd erase scrub`. */
async function searchFiles(run: Running, erasure: StoredErasure, wanted: Searched): Promise<StoredErasure> {
  const { database, cleaner, clock } = run;
  const { receiptId, kid, step } = erasure;
  if (step === 'rows' || (await hasSteps(database, receiptId))) return erasure;
  if (!(await cleaner.submit({ receiptId, kid, ...wanted }))) return erasure;
  const scopes = asErased(erasure.scopes, database.kind === 'sqlite');
  const end = isIncomplete(scopes)
    ? ({ step: 'scrub' } as const)
    : ({ step: 'done', doneAt: clock() } as const);
  await saveErasureStep(database, erasure, { ...end, scopes });
  return { ...erasure, ...end, scopes };
}

/** Takes up what a crash, a full disk or a busy file left unfinished. What fails is tried again the next time, and holds up no other. */
async function resumeAll(run: Running, isUnderWay: (receiptId: string) => boolean, wanted: Resumed) {
  const { database } = run;
  const failures: JobFault[] = [];
  const alone = async <T>(kid: string, work: () => Promise<T>): Promise<T | null> => {
    try {
      return await work();
    } catch (error) {
      failures.push({ kid, error });
      return null;
    }
  };
  // The file of a database that came from PostgreSQL is searched as any other.
  const steps = database.kind === 'sqlite' ? ([...UNFINISHED, 'scrub'] as const) : UNFINISHED;
  const { erasures, unreadable } = await erasuresAt(database, steps, wanted.before);
  failures.push(...unreadable.map((error) => ({ kid: error.kid, error })));
  const deleted: StoredErasure[] = [];
  for (const erasure of erasures.filter(({ receiptId }) => !isUnderWay(receiptId))) {
    const at = await alone(erasure.kid, async () => runSteps(run, await writeLine(run, erasure), null));
    if (at) deleted.push(at);
  }
  // Together: one search of the file is for all of them.
  const ended = deleted.map((at) => alone(at.kid, async () => receiptOf(await searchFiles(run, at, wanted))));
  return { receipts: (await Promise.all(ended)).filter((receipt) => receipt !== null), failures };
}

export type EraseService = ReturnType<typeof makeEraseService>;

export function makeEraseService(deps: EraseDeps) {
  const { database, clock } = deps;
  const underWay = new Map<string, Promise<unknown>>();
  let stopping = false;
  const run: Running = {
    ...deps,
    cleaner: makeCleaner({ ...deps, hurries: () => stopping }),
    goesOn: () => !stopping,
  };
  const resume = (wanted: Resumed) => resumeAll(run, (receiptId) => underWay.has(receiptId), wanted);
  return {
    /** The receipt is incomplete while steps remain or something holds the files open; a job finishes it. */
    erase(request: EraseRequest): Promise<ErasureReceipt> {
      const receiptId = request.again?.receiptId ?? `era_${makeUlid(clock, deps.random)}`;
      return new Promise<ErasureReceipt>((answer, refuse) => {
        const ended = erase(run, request, receiptId, answer).then(answer, refuse);
        underWay.set(
          receiptId,
          ended.finally(() => underWay.delete(receiptId)),
        );
      });
    },
    async status(receiptId: string): Promise<ErasureReceipt | null> {
      const found = await findErasure(database.read, receiptId);
      return found && receiptOf(found);
    },
    /** Newest first. `unreadable`: ids of those whose rows are damaged. */
    async list(kid: string, limit: number) {
      const { erasures, unreadable } = await listErasures(database, kid, limit);
      return { receipts: erasures.map(receiptOf), unreadable: unreadable.map(({ receiptId }) => receiptId) };
    },
    /** Finishes what is not finished, for an operator: rewrites the file now, whatever its size, if it has to be. */
    resume: () => resume({ before: clock(), rewriteNow: true }),
    /** The same for a job, which leaves alone what began in the last minute. */
    resumeStale: () => resume({ before: clock() - UNDER_WAY_MS, rewriteNow: false }),
    releasePages: () => run.cleaner.releasePages(),
    /** Stops between two steps; the next start continues. */
    async stop(): Promise<void> {
      stopping = true;
      await Promise.all(underWay.values());
    },
  };
}

/** What a principal asks for in its own session: its consent evidence and its links. */
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

/** The counts of an erasure if it were asked for now. Short reads: they wait for no writer and hold none up. */
export async function planErasure(
  database: Database,
  { kid, target, keep }: { readonly kid: string; readonly target: ErasureTarget; readonly keep: Keep },
): Promise<ScopeCounts> {
  const { linksOf, principal } = target;
  const rows = await countRows(database.read, { ...target, kid, keep, requestRef: String });
  const who = principal?.ref ?? linksOf;
  const openings = who === null ? 0 : await countOpenings(database.read, kid, who);
  const counts = { ...rows.counts, consent: consentCount(target, openings) };
  const erases = erasesAny(counts);
  return withCopies(counts, erases, erases || rows.held.length > 0 ? await countBackups(database) : 0);
}

function receiptOf({ kid: tenant, erasedAt, scopes, ...erasure }: StoredErasure): ErasureReceipt {
  const { receiptId, subject, requestedBy } = erasure;
  const done = { erasedAt: isoTime(erasedAt), scopes, incomplete: isIncomplete(scopes) };
  return { receiptId, tenant, subject, requestedBy, ...done };
}

function rowTargetOf({ tenant, target, keep }: EraseRequest): RowTarget {
  const { principal: _, ...rows } = target;
  return { ...rows, kid: tenant.kid, keep, requestRef: (id) => rightsRef(tenant.rightsKey, 'request', id) };
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

/** One line for all backups: only the operator knows how many copies still exist. */
async function countBackups(database: Database): Promise<number> {
  return (await readMeta(database, LAST_BACKUP)) === null ? 0 : 1;
}
