import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { type Config, ConfigError } from '../../config.ts';
import type { Database } from '../../db/engine.ts';
import {
  appendLine,
  createLineCheck,
  dropLines,
  type LineLog,
  type LogLine,
  openLine,
  readLines,
  sealLine,
} from '../../db/line-log.ts';
import { dropMeta, readMeta, writeMeta } from '../../db/meta-store.ts';
import { readOwnFile } from '../../db/own-files.ts';
import { isoTime } from '../../lib/clock.ts';
import { hmacSha256 } from '../../lib/crypto.ts';
import { tryOr } from '../../lib/errors.ts';
import type { StoredErasure } from './receipts-store.ts';

/**
 * DATA_DIR/erasures.log: what a restored database must not undo, one numbered line each (db/line-log.ts). It
 * has keyed references and names nobody. The database keeps the number of the last line, by which lines cut
 * off the end are found.
 */

const base = { v: z.literal(1), tenant: z.string(), at: z.string() };

const tombstoneSchema = z.object({
  ...base,
  receiptId: z.string(),
  subject: z.string(),
  requestedBy: z.enum(['subject', 'dpo', 'operator']),
  keep: z.object({ openContests: z.boolean(), override: z.boolean() }),
  refs: z.array(z.object({ kind: z.enum(['durable', 'request', 'principal', 'tenant']), ref: z.string() })),
});
/** An erasure, or the removal of a tenant. */
export type Tombstone = z.infer<typeof tombstoneSchema>;

const eventSchema = z.discriminatedUnion('event', [
  z.object({ ...base, event: z.literal('apikey.revoked'), id: z.string() }),
  z.object({ ...base, event: z.literal('staff.removed'), id: z.string() }),
  z.object({ ...base, event: z.literal('seal-key.destroyed'), generation: z.int() }),
  z.object({ ...base, event: z.enum(['hold.placed', 'hold.released']), device: z.string() }),
]);
type EventLine = z.infer<typeof eventSchema>;
/** A legal hold; `device` is a keyed reference. */
export type HoldLine = Extract<EventLine, { device: string }>;
/** A seal key, an API key or the passkey of staff that is no longer valid. */
export type EndedKey = Exclude<EventLine, HoldLine>;
export type ErasureLine = Tombstone | EventLine;

export const isHold = (line: ErasureLine): line is HoldLine => 'device' in line;
export const isTombstone = (line: ErasureLine): line is Tombstone => 'receiptId' in line;
export const isRemoval = (line: ErasureLine): line is Tombstone =>
  isTombstone(line) && line.refs.some(({ kind }) => kind === 'tenant');

/**
 * @param isAuthentic gpd wrote the line. Then the shape of an erasure is not checked again: by far the most
 * lines are erasures.
 */
export function parseLine(body: string, isAuthentic: boolean): ErasureLine | null {
  return tryOr(() => {
    const line = JSON.parse(body) as object;
    if ('event' in line) return eventSchema.parse(line);
    return isAuthentic ? (line as Tombstone) : tombstoneSchema.parse(line);
  }, null);
}

/** Two lines about one erasure, or about one change of a key or hold, have one name. */
export function nameOf(line: ErasureLine): string {
  if (isTombstone(line)) return line.receiptId;
  const { event, tenant, at } = line;
  const about = isHold(line) ? line.device : 'id' in line ? line.id : line.generation;
  return JSON.stringify([event, tenant, at, about]);
}

/**
 * Derives the key of the MACs from the server's own secret, which is in the database and in every backup, and
 * outlives a new master key.
 */
export const erasureLogKey = (serverSecret: Uint8Array): Buffer =>
  hmacSha256(serverSecret, 'gpd/erasures-log/v1');

export function erasuresFile(dataDir: string): string {
  return join(dataDir, 'erasures.log');
}

/** The log, and the database that keeps its count. */
export interface ErasureLogAccess {
  readonly database: Database;
  readonly dataDir: string;
  readonly logKey: Uint8Array;
}

export const erasureLogAccess = (
  { database, serverSecret }: { readonly database: Database; readonly serverSecret: Uint8Array },
  { data_dir }: { readonly data_dir: string },
): ErasureLogAccess => ({ database, dataDir: data_dir, logKey: erasureLogKey(serverSecret) });

export const erasureLog = ({ dataDir, logKey: key }: Omit<ErasureLogAccess, 'database'>): LineLog => ({
  path: erasuresFile(dataDir),
  key,
  name: 'gpd-erasures/1',
});

const COUNT = 'erasures-count';

/**
 * Each node on one PostgreSQL has its own log, named by its first line. No node notices a file that is
 * missing whole.
 */
async function nameOfCount({ kind }: Pick<Database, 'kind'>, log: LineLog): Promise<string> {
  if (kind === 'sqlite') return COUNT;
  for await (const { text } of readLines(log)) return `${COUNT} ${text.slice(-45, -29)}`;
  return `${COUNT} none`;
}

/** The number of the last line, as the database knows it. Null: the database knows no line. */
export type KnownCount = number | 'changed' | null;

function openCount(key: Uint8Array, value: string | null): KnownCount {
  if (value === null) return null;
  const opened = openLine({ key, name: COUNT }, value);
  return opened?.isAuthentic ? opened.number : 'changed';
}

async function readCount(database: Pick<Database, 'kind' | 'read'>, log: LineLog): Promise<KnownCount> {
  return openCount(log.key, await readMeta(database, await nameOfCount(database, log)));
}

const signCount = (key: Uint8Array, count: number): string =>
  sealLine({ key, name: COUNT }, count, JSON.stringify({ v: 1 }));

/** Writes the count of a database that a restore makes ready. */
export const writeErasureCount = (
  tx: Parameters<typeof writeMeta>[0],
  key: Uint8Array,
  count: number,
): Promise<void> => writeMeta(tx, COUNT, signCount(key, count));

/** Raises the count, and never lowers it: two appends may come to this in another order. */
async function raiseCount({ database }: ErasureLogAccess, log: LineLog, count: number): Promise<void> {
  const name = await nameOfCount(database, log);
  await database.transaction(async (tx) => {
    const storedCount = openCount(log.key, await readMeta({ read: tx }, name));
    if (typeof storedCount !== 'number' || storedCount < count)
      await writeMeta(tx, name, signCount(log.key, count));
  });
}

/** Appends a line, which is on disk before this returns. A line that is written twice is applied once. */
export async function appendErasureLine(logAccess: ErasureLogAccess, line: ErasureLine): Promise<void> {
  const log = erasureLog(logAccess);
  await mkdir(logAccess.dataDir, { recursive: true, mode: 0o700 });
  const storedCount = await readCount(logAccess.database, log);
  const number = await appendLine(
    log,
    () => Promise.resolve(line),
    typeof storedCount === 'number' ? storedCount : 0,
  );
  if (number !== null) await raiseCount(logAccess, log, number);
}

export const tombstoneOf = (erasure: StoredErasure): Tombstone => {
  const { receiptId, kid: tenant, subject, requestedBy, erasedAt, keep, refs } = erasure;
  return { v: 1, receiptId, tenant, subject, requestedBy, at: isoTime(erasedAt), keep, refs: [...refs] };
};

export const appendTombstone = (logAccess: ErasureLogAccess, erasure: StoredErasure): Promise<void> =>
  appendErasureLine(logAccess, tombstoneOf(erasure));

/** Appends the removal of a tenant, which an older backup would bring back. */
export const appendRemoval = (logAccess: ErasureLogAccess, kid: string, now: number): Promise<void> =>
  appendErasureLine(logAccess, {
    v: 1,
    receiptId: `off_${kid}_${now}`,
    tenant: kid,
    subject: kid,
    requestedBy: 'operator',
    at: isoTime(now),
    keep: { openContests: false, override: false },
    refs: [{ kind: 'tenant', ref: kid }],
  });

/**
 * Drops lines that are older than any backup. The file begins with its oldest lines; those of a merged backup
 * follow later.
 */
export async function dropOldErasureLines(logAccess: ErasureLogAccess, before: number): Promise<void> {
  const { database } = logAccess;
  const log = erasureLog(logAccess);
  const isOld = ({ at }: { readonly at: string }): boolean => Date.parse(at) < before;
  let isDue = false;
  for await (const { body, dropped, isAuthentic } of readLines(log)) {
    if (dropped) continue;
    const line = parseLine(body, isAuthentic);
    isDue = line !== null && isOld(line);
    break;
  }
  if (!isDue) return;
  const name = await nameOfCount(database, log);
  const storedCount = await readCount(database, log);
  await dropLines(log, isOld);
  if ((await nameOfCount(database, log)) === name || typeof storedCount !== 'number') return;
  await raiseCount(logAccess, log, storedCount);
  await database.transaction((tx) => dropMeta(tx, name));
}

/**
 * A writer of the file without the key can at most have people erased: without its MAC a line removes no
 * tenant, ends no key and changes no hold.
 */
const isTrusted = (line: ErasureLine, isAuthentic: boolean): boolean =>
  isAuthentic || (isTombstone(line) && !isRemoval(line));

export interface FoundLine {
  readonly line: ErasureLine;
  readonly isAuthentic: boolean;
}

/** Takes the trusted lines, some at a time. */
type Collect = (batch: readonly FoundLine[]) => Promise<void>;

/** The number of lines that are looked up in the database together. */
const BATCH = 2000;

/**
 * Reads every readable line and reports the first problem: one damaged line must not bring back a person who
 * was erased.
 */
export async function scanErasures(
  lines: AsyncIterable<LogLine> | Iterable<LogLine>,
  knownCount: KnownCount,
  collect: Collect = () => Promise.resolve(),
) {
  let problem = knownCount === 'changed' ? 'the count that the database keeps was changed' : null;
  let [lastNumber, droppedUntil, batch] = [0, '', [] as FoundLine[]];
  for await (const logLine of lines) {
    lastNumber = Math.max(lastNumber, logLine.number);
    if (logLine.dropped && logLine.dropped.until > droppedUntil) droppedUntil = logLine.dropped.until;
    const line = logLine.dropped ? null : parseLine(logLine.body, logLine.isAuthentic);
    problem ??= logLine.problem ?? (line || logLine.dropped ? null : `line ${logLine.number} is damaged`);
    if (line && isTrusted(line, logLine.isAuthentic)) batch.push({ line, isAuthentic: logLine.isAuthentic });
    if (batch.length < BATCH) continue;
    await collect(batch);
    batch = [];
  }
  await collect(batch);
  const missing = typeof knownCount === 'number' ? knownCount - lastNumber : 0;
  if (missing > 0) problem ??= `${missing} lines are missing at the end`;
  return { problem, last: lastNumber, droppedUntil };
}

/** Scans the file. A server may append meanwhile: the count is read before the file. */
export async function scanErasureLog(logAccess: ErasureLogAccess, collect?: Collect) {
  const log = erasureLog(logAccess);
  const storedCount = await readCount(logAccess.database, log);
  return scanErasures(readLines(log), storedCount, collect);
}

/**
 * Reads the whole lines of the file, for a backup. A line that a crash cut off was never answered to anybody.
 */
export function readErasureFile({ data_dir }: Pick<Config, 'data_dir'>): Buffer {
  const bytes = readOwnFile(erasuresFile(data_dir)) ?? Buffer.alloc(0);
  return bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1);
}

export const countLines = (bytes: Buffer): number =>
  bytes.reduce((count, byte) => count + (byte === 0x0a ? 1 : 0), 0);

export const textLines = (text: string): string[] => text.split('\n').slice(0, -1);

export function* judgeLines(log: Omit<LineLog, 'path'>, lines: readonly string[]): Generator<LogLine> {
  const check = createLineCheck(log);
  for (const line of lines) yield check(line, 0);
}

/**
 * Joins the lines of both: those of this directory as they are, and then those that only the backup has, with
 * new numbers.
 */
export function mergeLines(
  log: LineLog,
  ours: readonly string[],
  carried: readonly string[],
): readonly string[] {
  if (ours.length === 0) return carried;
  const ourBodies = new Set<string>();
  let lastNumber = 0;
  for (const { body, number } of judgeLines(log, ours)) {
    ourBodies.add(body);
    lastNumber = Math.max(lastNumber, number);
  }
  const addedLines: string[] = [];
  for (const { body, isAuthentic, dropped } of judgeLines(log, carried)) {
    // A forged line must not get the MAC that makes it one of ours.
    if (!isAuthentic || dropped || ourBodies.has(body)) continue;
    lastNumber += 1;
    addedLines.push(sealLine(log, lastNumber, body));
  }
  return [...ours, ...addedLines];
}

/**
 * Refuses a log with a problem: an erasure that cannot be read, or is missing, cannot be repeated.
 * @throws {ConfigError}
 */
export function requireWholeLog(problem: string | null, fileName: string): void {
  if (problem === null) return;
  throw new ConfigError(
    `${fileName}: ${problem}: an erasure that it told of could not be repeated; put the file back from a copy`,
  );
}
