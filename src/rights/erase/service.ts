import { rightsRef } from '../../audit/reference.ts';
import type { PrincipalSession } from '../../auth/session.ts';
import { HOUR, isoTime, MINUTE, SECOND } from '../../lib/clock.ts';
import type { Fault } from '../../lib/jobs.ts';
import { makeUlid } from '../../lib/random.ts';
import type { ErasureReceipt } from '../../schema/rights.ts';
import { type CleanDeps, makeCleaner } from './clean-service.ts';
import {
  type BeginDeps,
  type Begun,
  begin,
  type EraseRequest,
  WITH_TOMBSTONE,
} from './erase-transaction-service.ts';
import { asErased, isIncomplete, type Keep, NOTHING } from './erasure.ts';
import {
  endSteps,
  erasuresAt,
  findErasure,
  listErasures,
  type StoredErasure,
  saveErasureStep,
  UNFINISHED,
} from './receipts-store.ts';
import { dropAbandoned } from './stage-store.ts';
import { deleteMarked } from './steps-store.ts';
import { appendTombstone, type OutsideLog } from './tombstone-files.ts';

/**
 * Erasure: one transaction deletes the rows, then a tombstone is written outside the database, then the files are searched
 * for left bytes. A large erasure only marks its rows in that transaction, which hides them; steps delete them (ADR 0028).
 */

export interface EraseDeps extends BeginDeps, OutsideLog, Pick<CleanDeps, 'rewriteWindow' | 'largeFile'> {
  /** What held up an erasure whose rows are gone: the job finishes it. */
  readonly onFault: (error: unknown) => void;
  /** How long an answer waits for steps and for the search before it says `pending`. */
  readonly patienceMs?: number;
}

export const KEEP_NOTHING: Keep = { openContests: false, override: false };
/** The job leaves alone what a request is still at work on. */
export const UNDER_WAY_MS = MINUTE;
const PATIENCE_MS = 2 * SECOND;

function receiptOf({ kid: tenant, erasedAt, scopes, ...erasure }: StoredErasure): ErasureReceipt {
  const { receiptId, subject, requestedBy } = erasure;
  const done = { erasedAt: isoTime(erasedAt), scopes, incomplete: isIncomplete(scopes) };
  return { receiptId, tenant, subject, requestedBy, ...done };
}

/** The tombstone, outside the database. */
async function bury(deps: EraseDeps, erasure: StoredErasure): Promise<StoredErasure> {
  if (erasure.step !== 'rows' && erasure.step !== 'marked') return erasure;
  await appendTombstone(deps, erasure);
  const step = WITH_TOMBSTONE[erasure.step];
  await saveErasureStep(deps.database, erasure, { step });
  return { ...erasure, step };
}

/** What PostgreSQL's files hold of it no server cleans. */
async function complete({ database, clock }: EraseDeps, erasure: StoredErasure): Promise<StoredErasure> {
  const scopes = asErased(erasure.scopes, database.kind === 'sqlite');
  const end = isIncomplete(scopes)
    ? ({ step: 'scrub' } as const)
    : ({ step: 'done', doneAt: clock() } as const);
  const done: StoredErasure = { ...erasure, ...end, scopes };
  await saveErasureStep(database, erasure, done);
  return done;
}

interface Running extends EraseDeps {
  readonly cleaner: ReturnType<typeof makeCleaner>;
  /** False once the process is stopping. */
  readonly goesOn: () => boolean;
  readonly isUnderWay: (receiptId: string) => boolean;
}

/** Runs the steps of a large erasure. It stays `deleting` when the process stops or another node deletes the last rows. */
async function runSteps({ database, goesOn }: Running, erasure: StoredErasure) {
  if (erasure.step !== 'deleting') return { erasure, deleted: null };
  const deleted = await deleteMarked(database, erasure, goesOn);
  return { erasure: (await endSteps(database, erasure.receiptId)) ?? erasure, deleted };
}

/** @param early answers before the steps have finished */
async function finish(
  run: Running,
  { erasure, rows, secrets }: Begun,
  early: (receipt: ErasureReceipt) => void,
): Promise<ErasureReceipt> {
  const { cleaner, patienceMs = PATIENCE_MS } = run;
  let at = erasure;
  let timer: NodeJS.Timeout | undefined;
  try {
    at = await bury(run, erasure);
    if (Number.isFinite(patienceMs)) timer = setTimeout(early, patienceMs, receiptOf(at));
    const ended = await runSteps(run, at);
    at = ended.erasure;
    const needles = {
      requests: new Set(ended.deleted ?? rows.requests),
      others: new Set([...rows.devices, ...rows.visitorIds, ...rows.caseBytes, ...secrets]),
    };
    const { receiptId, kid } = at;
    const clean = at.step === 'logged' && (await cleaner.submit({ receiptId, kid, needles }));
    return receiptOf(clean ? await complete(run, at) : at);
  } catch (error) {
    // The rows are gone, and nobody may be told that nothing was done.
    run.onFault(error);
    return receiptOf(at);
  } finally {
    clearTimeout(timer);
  }
}

/** Of an erasure that fails or cannot be read the others go on; `failures` is tried again the next time. */
async function resumeAll(
  run: Running,
  { before, rewriteNow }: { readonly before: number; readonly rewriteNow: boolean },
) {
  const { database, cleaner, isUnderWay } = run;
  const failures: Fault[] = [];
  const alone = async <T>(kid: string | null, work: () => Promise<T>): Promise<T | null> => {
    try {
      return await work();
    } catch (error) {
      failures.push({ kid, error });
      return null;
    }
  };
  await alone(null, () => dropAbandoned(database, before - HOUR));
  // Of a database that came from PostgreSQL the file is searched as for any other.
  const steps = database.kind === 'sqlite' ? ([...UNFINISHED, 'scrub'] as const) : UNFINISHED;
  const { erasures, unreadable } = await erasuresAt(database, steps, before);
  failures.push(...unreadable.map((error) => ({ kid: error.kid, error })));
  const found: StoredErasure[] = [];
  for (const erasure of erasures) {
    if (isUnderWay(erasure.receiptId)) continue;
    const reached = await alone(erasure.kid, async () => {
      const buried = await bury(run, erasure);
      return (await runSteps(run, buried)).erasure;
    });
    if (reached) found.push(reached);
  }
  const receipts = await Promise.all(
    found.map((erasure) =>
      alone(erasure.kid, async () => {
        const { receiptId, kid, step } = erasure;
        const isDeleted = step === 'logged' || step === 'scrub';
        const clean = isDeleted && (await cleaner.submit({ receiptId, kid, rewriteNow }));
        return receiptOf(clean ? await complete(run, erasure) : erasure);
      }),
    ),
  );
  return { receipts: receipts.filter((receipt) => receipt !== null), failures };
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

export type EraseService = ReturnType<typeof makeEraseService>;

export function makeEraseService(deps: EraseDeps) {
  const { clock, database } = deps;
  const underWay = new Map<string, Promise<unknown>>();
  let stopping = false;
  const run: Running = {
    ...deps,
    cleaner: makeCleaner({ ...deps, hurries: () => stopping }),
    goesOn: () => !stopping,
    isUnderWay: (receiptId) => underWay.has(receiptId),
  };
  return {
    /** The receipt is incomplete while steps remain or something holds the files open; a job finishes it. */
    erase(request: EraseRequest): Promise<ErasureReceipt> {
      const receiptId = request.again?.receiptId ?? `era_${makeUlid(clock, deps.random)}`;
      let early: (receipt: ErasureReceipt) => void = () => {};
      const answered = new Promise<ErasureReceipt>((resolve) => {
        early = resolve;
      });
      const whole = begin(deps, request, receiptId).then((begun) =>
        begun.erasure.step === 'done' ? receiptOf(begun.erasure) : finish(run, begun, early),
      );
      const ended = whole.catch(() => {}).finally(() => underWay.delete(receiptId));
      underWay.set(receiptId, ended);
      return Promise.race([whole, answered]);
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
    resume: () => resumeAll(run, { before: clock(), rewriteNow: true }),
    /** The same for what no request is at work on any more; a large file is rewritten in its window only. */
    resumeStale: () => resumeAll(run, { before: clock() - UNDER_WAY_MS, rewriteNow: false }),
    releasePages: () => run.cleaner.releasePages(),
    /** Stops between two steps; the next start continues. */
    async stop(): Promise<void> {
      stopping = true;
      await Promise.all(underWay.values());
    },
  };
}
