import { statSync } from 'node:fs';
import { idsInFile, type SoughtIds } from '../../db/byte-scan.ts';
import type { Database } from '../../db/engine.ts';
import { releaseFreePages } from '../../db/files.ts';
import { createGroup } from '../../db/group-commit.ts';
import { LAST_REWRITE, readMeta, writeMeta } from '../../db/meta-store.ts';
import { type Clock, type DailyWindow, HOUR, isWithin } from '../../lib/clock.ts';
import { markComplete } from './erasure.ts';
import { idsInUse } from './find.ts';
import { erasuresAt, saveErasureStep } from './receipts.ts';
import { scrubFiles } from './scrub.ts';

/**
 * Makes sure that no erased byte is left in the files of the database: empties the write-ahead log and searches the file. If an id is
 * found, it rewrites the file, which blocks all writes: a large file at most once a day, in the operator's window.
 */

export interface CleanDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** When a large file may be rewritten; null: only when an operator says so. */
  readonly rewriteWindow: DailyWindow | null;
  /** Smaller files are rewritten at once. */
  readonly largeFile?: number;
  readonly onFault: (error: unknown) => void;
  /** True: the server no longer answers, so that the search takes no pauses. */
  readonly isStopping: () => boolean;
}

export interface SearchRequest {
  readonly receiptId: string;
  readonly kid: string;
  /** Undefined: the needles of an earlier attempt that could not search. Null: unknown, and only rewriting is sure. */
  readonly needles?: SoughtIds | null;
  /** An operator waits for it. */
  readonly rewriteNow?: boolean;
}

type Search = Omit<SearchRequest, 'needles'> & { readonly needles: SoughtIds | null };

/** Rewritten in about half a second: no write is refused. */
const LARGE_FILE = 64 * 1024 * 1024;
/** Less than a day, as the window opens at the same time each day. */
const REWRITE_EVERY_MS = 23 * HOUR;
const MAX_KEPT = 1000;
const NOTHING: SoughtIds = { requests: new Set(), others: new Set() };

/** A device that visited again is rightly in the file. */
async function withoutIdsInUse({ read }: Database, kid: string, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const idsUsed = await idsInUse(read, kid, { devices: ids, visitorIds: ids });
  return ids.filter((id) => !idsUsed.has(id));
}

/** Finds the receipts of which an id is in the file, and those whose ids are unknown. */
async function findReceiptsInFile(
  { database, isStopping: hurries }: CleanDeps,
  file: string,
  searches: readonly Search[],
) {
  const [requestIds, otherIds] = [new Set<string>(), new Set<string>()];
  for (const { kid, needles } of searches) {
    for (const id of needles?.requests ?? []) requestIds.add(id);
    for (const id of await withoutIdsInUse(database, kid, [...(needles?.others ?? [])])) otherIds.add(id);
  }
  const foundIds = await idsInFile(file, { requests: requestIds, others: otherIds }, hurries);
  const receiptsFound = new Set<string>();
  for (const { receiptId, kid, needles } of searches) {
    const hits = [...(needles?.others ?? [])].filter((id) => foundIds.has(id));
    const isFound = needles === null || [...needles.requests].some((id) => foundIds.has(id));
    // It may have visited while the file was searched.
    if (isFound || (await withoutIdsInUse(database, kid, hits)).length > 0) receiptsFound.add(receiptId);
  }
  return receiptsFound;
}

async function mayRewrite(deps: CleanDeps): Promise<boolean> {
  const { database, clock, rewriteWindow } = deps;
  const now = clock();
  if (rewriteWindow === null || !isWithin(rewriteWindow, now)) return false;
  return now - Number((await readMeta(database, LAST_REWRITE)) ?? 0) >= REWRITE_EVERY_MS;
}

async function rewrite(deps: CleanDeps, file: string, rewriteNow: boolean): Promise<boolean> {
  const { database, clock, onFault, largeFile = LARGE_FILE } = deps;
  const isLarge = statSync(file).size > largeFile;
  if (isLarge && !rewriteNow && !(await mayRewrite(deps))) return false;
  try {
    // The time is written before the attempt, so that a failing one is not repeated all night.
    if (isLarge) await database.transaction((tx) => writeMeta(tx, LAST_REWRITE, String(clock())));
    await database.vacuum();
    return true;
  } catch (error) {
    onFault(error);
    return false;
  }
}

export function createCleaner(deps: CleanDeps) {
  const { database } = deps;
  let queueEnd: Promise<unknown> = Promise.resolve();
  const serialise = <T>(work: () => Promise<T>): Promise<T> => {
    const result = queueEnd.then(work);
    queueEnd = result.catch(() => {});
    return result;
  };
  const keptNeedles = new Map<string, SoughtIds>();
  const keepNeedles = (receiptId: string, needles: SoughtIds | null): void => {
    if (needles && keptNeedles.size < MAX_KEPT) keptNeedles.set(receiptId, needles);
  };

  async function clean(searches: readonly Search[]): Promise<readonly boolean[]> {
    if (!(await database.truncateLog())) {
      for (const { receiptId, needles } of searches) keepNeedles(receiptId, needles);
      return searches.map(() => false);
    }
    if (database.file === null) return searches.map(() => true);
    const receiptsFound = await findReceiptsInFile(deps, database.file, searches);
    const isClean = ({ receiptId }: Search): boolean => !receiptsFound.has(receiptId);
    if (receiptsFound.size === 0) return searches.map(isClean);
    const rewriteNow = searches.some((one) => one.rewriteNow === true && !isClean(one));
    if (!(await rewrite(deps, database.file, rewriteNow))) return searches.map(isClean);
    if (await database.truncateLog()) return searches.map(() => true);
    for (const receiptId of receiptsFound) keepNeedles(receiptId, NOTHING);
    return searches.map(isClean);
  }

  const group = createGroup<SearchRequest, boolean>({
    name: 'clean',
    run: (requests) => {
      const searches = requests.map((one) => ({
        ...one,
        needles: one.needles ?? keptNeedles.get(one.receiptId) ?? null,
      }));
      for (const { receiptId } of requests) keptNeedles.delete(receiptId);
      return serialise(() => clean(searches));
    },
    maxBatch: 1000,
    maxWaiting: 10_000,
  });
  return {
    /** One pass at a time; all erasures that wait meanwhile share the next. Answers whether nothing is left. */
    submit: (one: SearchRequest) => group.submit(one),
    /** Waits for a running search, which would miss a page that moves. */
    releasePages: () => serialise(() => releaseFreePages(database)),
  };
}

/**
 * Rewrites the files of PostgreSQL, and completes the receipts that waited for it. Returns how many.
 * @param owner the same database, opened by the owner of the tables
 * @param kid completes receipts of this tenant only; undefined: of all
 */
export async function scrub(
  database: Database,
  owner: Database,
  { now, kid }: { readonly now: number; readonly kid: string | undefined },
): Promise<number> {
  const { erasures } = await erasuresAt(database, ['scrub'], now);
  const waiting = erasures.filter((erasure) => kid === undefined || erasure.kid === kid);
  if (waiting.length === 0) return 0;
  await scrubFiles(owner);
  for (const erasure of waiting)
    await saveErasureStep(database, erasure, {
      step: 'done',
      scopes: markComplete(erasure.scopes, true),
      doneAt: now,
    });
  return waiting.length;
}
