import { statSync } from 'node:fs';
import { idsInFile, type SoughtIds } from '../../db/byte-scan.ts';
import type { Database } from '../../db/db.ts';
import { releaseFreePages } from '../../db/files.ts';
import { makeGroup } from '../../db/group-commit.ts';
import { LAST_REWRITE, readMeta, writeMeta } from '../../db/meta-store.ts';
import { type Clock, type DailyWindow, HOUR, isWithin } from '../../lib/clock.ts';
import { asErased } from './erasure.ts';
import { idsInUse } from './find.ts';
import { erasuresAt, saveErasureStep } from './receipts.ts';
import { scrubFiles } from './scrub.ts';

/**
 * No byte of what was erased is left in the files: the log is emptied and the file is searched. If an id is found
 * the file is rewritten, which blocks all writes: a large one at most once a day, in the operator's window.
 */

export interface CleanDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** When a large file may be rewritten; null: only when an operator says so. */
  readonly rewriteWindow: DailyWindow | null;
  /** Smaller files are rewritten at once. */
  readonly largeFile?: number;
  readonly onFault: (error: unknown) => void;
  /** True: nobody is served any more, and the search takes no pauses. */
  readonly hurries: () => boolean;
}

export interface Wanted {
  readonly receiptId: string;
  readonly kid: string;
  /** Undefined: those of an attempt that could not search. If it is not known either, only rewriting is sure. */
  readonly needles?: SoughtIds | null;
  /** An operator waits for it. */
  readonly rewriteNow?: boolean;
}

type Sought = Omit<Wanted, 'needles'> & { readonly needles: SoughtIds | null };

/** Rewritten in about half a second: no write is refused. */
const LARGE_FILE = 64 * 1024 * 1024;
/** Less than a day, as the window opens at the same time each day. */
const REWRITE_EVERY_MS = 23 * HOUR;
const MAX_KEPT = 1000;
const NOTHING: SoughtIds = { requests: new Set(), others: new Set() };

/** A device that visited again is rightly in the file. */
async function notInUse({ read }: Database, kid: string, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const used = await idsInUse(read, kid, { devices: ids, visitorIds: ids });
  return ids.filter((id) => !used.has(id));
}

/** Receipts of which an id is in the file, or nobody knows what to look for. */
async function findDirty({ database, hurries }: CleanDeps, file: string, sought: readonly Sought[]) {
  const [requests, others] = [new Set<string>(), new Set<string>()];
  for (const { kid, needles } of sought) {
    for (const id of needles?.requests ?? []) requests.add(id);
    for (const id of await notInUse(database, kid, [...(needles?.others ?? [])])) others.add(id);
  }
  const found = await idsInFile(file, { requests, others }, hurries);
  const dirty = new Set<string>();
  for (const { receiptId, kid, needles } of sought) {
    const hits = [...(needles?.others ?? [])].filter((id) => found.has(id));
    const isFound = needles === null || [...needles.requests].some((id) => found.has(id));
    // It may have visited while the file was searched.
    if (isFound || (await notInUse(database, kid, hits)).length > 0) dirty.add(receiptId);
  }
  return dirty;
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
    // Before it: one that fails is not tried all night.
    if (isLarge) await database.transaction((tx) => writeMeta(tx, LAST_REWRITE, String(clock())));
    await database.vacuum();
    return true;
  } catch (error) {
    onFault(error);
    return false;
  }
}

export function makeCleaner(deps: CleanDeps) {
  const { database } = deps;
  let last: Promise<unknown> = Promise.resolve();
  const serialise = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work);
    last = next.catch(() => {});
    return next;
  };
  const kept = new Map<string, SoughtIds>();
  const keep = (receiptId: string, needles: SoughtIds | null): void => {
    if (needles && kept.size < MAX_KEPT) kept.set(receiptId, needles);
  };

  async function clean(sought: readonly Sought[]): Promise<readonly boolean[]> {
    if (!(await database.truncateLog())) {
      for (const { receiptId, needles } of sought) keep(receiptId, needles);
      return sought.map(() => false);
    }
    if (database.file === null) return sought.map(() => true);
    const dirty = await findDirty(deps, database.file, sought);
    const isClean = ({ receiptId }: Sought): boolean => !dirty.has(receiptId);
    if (dirty.size === 0) return sought.map(isClean);
    const rewriteNow = sought.some((one) => one.rewriteNow === true && !isClean(one));
    if (!(await rewrite(deps, database.file, rewriteNow))) return sought.map(isClean);
    if (await database.truncateLog()) return sought.map(() => true);
    for (const receiptId of dirty) keep(receiptId, NOTHING);
    return sought.map(isClean);
  }

  const group = makeGroup<Wanted, boolean>({
    name: 'clean',
    run: (wanted) => {
      const sought = wanted.map((one) => ({
        ...one,
        needles: one.needles ?? kept.get(one.receiptId) ?? null,
      }));
      for (const { receiptId } of wanted) kept.delete(receiptId);
      return serialise(() => clean(sought));
    },
    maxBatch: 1000,
    maxWaiting: 10_000,
  });
  return {
    /** One pass at a time; all erasures that wait meanwhile share the next. Answers whether nothing is left. */
    submit: (one: Wanted) => group.submit(one),
    /** In its turn: a page that moves while the file is searched would be missed. */
    releasePages: () => serialise(() => releaseFreePages(database)),
  };
}

/**
 * Rewrites the files of PostgreSQL, and completes the receipts that waited for it. Returns how many.
 * @param owner the same database, opened by the owner of the tables
 * @param kid of this tenant alone
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
      scopes: asErased(erasure.scopes, true),
      doneAt: now,
    });
  return waiting.length;
}
