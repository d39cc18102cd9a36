import { statSync } from 'node:fs';
import { idsInFile, type SoughtIds } from '../../db/byte-scan.ts';
import { releaseFreePages } from '../../db/database-file.ts';
import type { Database } from '../../db/engine.ts';
import { readForeignObjects } from '../../db/foreign-objects.ts';
import { createGroup } from '../../db/group-commit.ts';
import { LAST_REWRITE, readMeta, writeMeta } from '../../db/meta-store.ts';
import { type Clock, type DailyWindow, HOUR, isWithin } from '../../lib/clock.ts';
import { TABLES } from '../person-map.ts';
import { hasFailed, isIncomplete, markComplete, markFailed } from './erasure-service.ts';
import { idsInUse } from './find-store.ts';
import { incompleteErasures, type StoredErasure, saveProgress } from './receipts-store.ts';
import { hasPages } from './rows-store.ts';
import { scrubFiles } from './scrub-store.ts';

/**
 * Makes sure that no erased byte is left in the files of the database. gpd empties the write-ahead log and
 * searches the file. If it finds an id, it rewrites the file, which blocks all writes: a large file at most
 * once a day, in the operator's window. Then it searches again: an id that is still there is in a live row,
 * and the erasure has failed (docs/rights.md, "What an erasure does").
 */

export interface CleanDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** When a large file may be rewritten; null: only when an operator says so. */
  readonly rewriteWindow: DailyWindow | null;
  /** Smaller files are rewritten at once. */
  readonly largeFile?: number;
  readonly onFault: (error: unknown) => void;
  /** True once the server no longer answers: the search then takes no pauses. */
  readonly isStopping: () => boolean;
}

interface SearchScope {
  /**
   * The bytes that the erasure has just deleted. Undefined: those of an earlier attempt that did not end are
   * sought.
   */
  readonly needles?: SoughtIds;
  /** True: an operator waits for the search, and allows that a large file is rewritten. */
  readonly rewriteNow?: boolean;
}

interface SearchRequest extends SearchScope {
  readonly receiptId: string;
  readonly kid: string;
  /** An earlier search found an id in the rewritten file: only an operator has it rewritten again. */
  readonly hasFailed: boolean;
}

/** `waiting`: the file could not be searched or rewritten yet. `failed`: an id is in the rewritten file. */
type SearchResult = 'clean' | 'waiting' | 'failed';

type Search = Omit<SearchRequest, 'needles'> & Attempt;

interface Attempt {
  /** Null: nobody knows the bytes after a crash, and only rewriting the file is sure. */
  readonly needles: SoughtIds | null;
  /** True: an id is in the file, which is not searched again until it is rewritten. */
  readonly isFound: boolean;
}

/** Bytes. A smaller file is rewritten in about half a second, and no write is refused. */
const LARGE_FILE = 64 * 1024 * 1024;
/** The interval is less than a day, because the window opens at the same time each day. */
const REWRITE_EVERY_MS = 23 * HOUR;
const MAX_KEPT = 1000;

/** Leaves out ids of devices that visited again, which are rightly in the file. */
async function withoutIdsInUse({ read }: Database, kid: string, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const idsUsed = await idsInUse(read, kid, { devices: ids, visitorIds: ids });
  return ids.filter((id) => !idsUsed.has(id));
}

/** Finds the searches of which an id is in the file, and those whose ids are unknown. */
async function findInFile({ database, isStopping }: CleanDeps, file: string, searches: readonly Search[]) {
  const [requestIds, otherIds] = [new Set<string>(), new Set<string>()];
  for (const { kid, needles } of searches.filter(({ isFound }) => !isFound)) {
    for (const id of needles?.requests ?? []) requestIds.add(id);
    for (const id of await withoutIdsInUse(database, kid, [...(needles?.others ?? [])])) otherIds.add(id);
  }
  const foundIds = await idsInFile(file, { requests: requestIds, others: otherIds }, isStopping);
  const found = new Set<Search>();
  for (const search of searches) {
    const { kid, needles } = search;
    const hits = [...(needles?.others ?? [])].filter((id) => foundIds.has(id));
    const isFound =
      search.isFound || needles === null || [...needles.requests].some((id) => foundIds.has(id));
    // A device may have visited while the file was searched.
    if (isFound || (await withoutIdsInUse(database, kid, hits)).length > 0) found.add(search);
  }
  return found;
}

/**
 * Finds the searches of which an id is in the rewritten file. Unknown ids cannot be sought, and gpd's own
 * tables hold none of them.
 */
async function findInRewritten(deps: CleanDeps, file: string, searches: readonly Search[]) {
  const again = searches.map((search) => ({ ...search, isFound: false }));
  const found = await findInFile(deps, file, again);
  const isUnknown = [...found].some(({ needles }) => needles === null);
  const hasForeign = isUnknown && (await readForeignObjects(deps.database, TABLES)).length > 0;
  return new Set(
    searches.filter((search, i) => {
      const one = again[i];
      return one && found.has(one) && (search.needles !== null || hasForeign);
    }),
  );
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

/** Keeps the needles of attempts that did not end, in memory alone. */
function createKeptAttempts() {
  const attempts = new Map<string, Attempt>();
  return {
    get: (receiptId: string) => attempts.get(receiptId),
    keep({ receiptId, needles, isFound }: Search): void {
      if (needles && (attempts.has(receiptId) || attempts.size < MAX_KEPT))
        attempts.set(receiptId, { needles, isFound });
    },
    drop: ({ receiptId }: Search) => attempts.delete(receiptId),
  };
}

async function saveResult(
  { database, clock }: CleanDeps,
  erasure: StoredErasure,
  result: SearchResult,
): Promise<StoredErasure> {
  if (result === 'waiting' || (result === 'failed' && hasFailed(erasure.scopes))) return erasure;
  if (result === 'failed') return saveProgress(database, erasure, { scopes: markFailed(erasure.scopes) });
  // A server cleans the file of SQLite alone: those of PostgreSQL wait for `gpd erase scrub`.
  const scopes = markComplete(erasure.scopes, database.kind === 'sqlite');
  const filesCleanAt = isIncomplete(scopes) ? null : clock();
  return saveProgress(database, erasure, { state: 'done', scopes, filesCleanAt });
}

export function createCleaner(deps: CleanDeps) {
  const { database } = deps;
  let queueEnd: Promise<unknown> = Promise.resolve();
  const serialise = <T>(work: () => Promise<T>): Promise<T> => {
    const result = queueEnd.then(work);
    queueEnd = result.catch(() => {});
    return result;
  };
  const attempts = createKeptAttempts();

  async function clean(searches: readonly Search[]): Promise<readonly SearchResult[]> {
    if (!(await database.truncateLog())) return searches.map(() => 'waiting');
    if (database.file === null) return searches.map(() => 'clean');
    const found = await findInFile(deps, database.file, searches);
    const results = (unclean: ReadonlySet<Search>, result: SearchResult): SearchResult[] =>
      searches.map((search) => (unclean.has(search) ? result : 'clean'));
    // A file that was rewritten in vain is not rewritten each minute.
    const due = [...found].filter(({ hasFailed, rewriteNow }) => !hasFailed || rewriteNow === true);
    if (due.length === 0) return results(found, 'failed');
    const rewriteNow = due.some((one) => one.rewriteNow === true);
    if (!(await rewrite(deps, database.file, rewriteNow))) {
      for (const search of due) attempts.keep({ ...search, isFound: true });
      return results(found, 'waiting');
    }
    if (!(await database.truncateLog())) return results(found, 'waiting');
    return results(await findInRewritten(deps, database.file, [...found]), 'failed');
  }

  const group = createGroup<SearchRequest, SearchResult>({
    name: 'clean',
    run: async (requests) => {
      const searches = requests.map((one): Search => {
        const { needles = null, isFound = false } = attempts.get(one.receiptId) ?? {};
        return { ...one, needles: one.needles ?? needles, isFound };
      });
      // Needles are kept before the search, so that after one that throws the next attempt has them.
      for (const search of searches) attempts.keep(search);
      const results = await serialise(() => clean(searches));
      for (const [i, search] of searches.entries()) if (results[i] === 'clean') attempts.drop(search);
      return results;
    },
    maxBatch: 1000,
    maxWaiting: 10_000,
  });
  return {
    /**
     * Searches for what an erasure deleted, and completes its receipt. One pass runs at a time; all erasures
     * that wait meanwhile share the next.
     */
    async search(erasure: StoredErasure, scope: SearchScope): Promise<StoredErasure> {
      const { receiptId, kid } = erasure;
      if (await hasPages(database, receiptId)) return erasure;
      const request = { ...scope, receiptId, kid, hasFailed: hasFailed(erasure.scopes) };
      return saveResult(deps, erasure, await group.submit(request));
    },
    /** Gives free pages back after a running search, which would miss a page that moves. */
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
  const { erasures } = await incompleteErasures(database, ['done'], now);
  const waiting = erasures.filter((erasure) => kid === undefined || erasure.kid === kid);
  if (waiting.length === 0) return 0;
  await scrubFiles(owner);
  for (const erasure of waiting)
    await saveProgress(database, erasure, {
      scopes: markComplete(erasure.scopes, true),
      filesCleanAt: now,
    });
  return waiting.length;
}
