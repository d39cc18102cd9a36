import { constants, lstatSync, renameSync, rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { withClosing } from '../lib/collections.ts';
import { equalBytes, hmacSha256Text } from '../lib/crypto.ts';
import { succeeds } from '../lib/errors.ts';
import { withFileLock } from './lock-files.ts';
import {
  createEmptyFile,
  NO_LINK,
  ownAsDirectory,
  pathExists,
  refuseLink,
  syncPath,
  unguessable,
} from './own-files.ts';
import { temporaryFile } from './staging-files.ts';

/**
 * A file of numbered lines: JSON with a number and a MAC over the log's name, the number and the rest. A
 * changed, removed, repeated, moved or foreign line is detected; a caller that knows the last number notices
 * a cut-off end. It is read in pieces, and several processes may append.
 */
export interface LineLog {
  readonly path: string;
  readonly key: Uint8Array;
  /** Keeps the lines of one log out of another that has the same key. */
  readonly name: string;
}

export class BrokenLog extends Error {
  override readonly name = 'BrokenLog';

  constructor({ path }: Pick<LineLog, 'path'>, problem: string) {
    super(`${path}: ${problem}`);
  }
}

/** Stands where lines were dropped, with the number of the last of them. */
export interface DroppedLines {
  readonly dropped: number;
  /** The newest time that one of them had. */
  readonly until: string;
}

export interface LogLine {
  readonly number: number;
  /** The line in the file. */
  readonly text: string;
  /** JSON without the number and the MAC. */
  readonly body: string;
  /** True: the MAC is right. */
  readonly isAuthentic: boolean;
  readonly dropped: DroppedLines | null;
  /** The problem in words, with the number; null: the line is authentic and follows the one before it. */
  readonly problem: string | null;
  /** Offset of the byte after it. */
  readonly end: number;
}

const ENDING = /,"n":(\d{1,15}),"mac":"([\w-]{43})"\}$/;
const DROPPED = '{"dropped":';

const macOf = ({ key, name }: Omit<LineLog, 'path'>, number: number, body: string): string =>
  hmacSha256Text(key, `${name}\n${number}\n${body}`);

/** @param body JSON of an object with at least one member */
export function sealLine(log: Omit<LineLog, 'path'>, number: number, body: string): string {
  return `${body.slice(0, -1)},"n":${number},"mac":"${macOf(log, number, body)}"}`;
}

/** Null: it has no number and MAC. */
export function openLine(log: Omit<LineLog, 'path'>, text: string) {
  const [ending, digits, mac] = ENDING.exec(text) ?? [];
  if (ending === undefined || mac === undefined) return null;
  const [number, body] = [Number(digits), `${text.slice(0, -ending.length)}}`];
  const isAuthentic = equalBytes(Buffer.from(mac), Buffer.from(macOf(log, number, body)));
  return { number, body, isAuthentic };
}

const linesFrom = (first: number, last: number): string =>
  first === last ? `line ${first} is missing` : `lines ${first} to ${last} are missing`;

/** Judges line after line. @param last number of the line before the first one */
export function createLineCheck(log: Omit<LineLog, 'path'>, last = 0) {
  let before = last;
  return (text: string, end: number): LogLine => {
    const opened = openLine(log, text);
    if (!opened) {
      const problem = `line ${before + 1} is damaged`;
      return { number: before + 1, text, body: text, isAuthentic: false, dropped: null, problem, end };
    }
    const { number, body, isAuthentic } = opened;
    if (!isAuthentic) {
      if (number === before + 1) before = number;
      return { ...opened, text, dropped: null, problem: `line ${number} was changed`, end };
    }
    const dropped = body.startsWith(DROPPED) ? (JSON.parse(body) as DroppedLines) : null;
    const first = number - (dropped?.dropped ?? 1) + 1;
    let problem: string | null = null;
    if (first > before + 1) problem = linesFrom(before + 1, first - 1);
    if (first <= before) problem = `line ${number} is repeated or in another place`;
    before = Math.max(before, number);
    return { number, text, body, isAuthentic, dropped, problem, end };
  };
}

const READ = constants.O_RDONLY | NO_LINK;
const APPEND = constants.O_RDWR | constants.O_APPEND | NO_LINK;
const PIECE_BYTES = 256 * 1024;
/** No line that gpd writes is this long. */
const MAX_LINE_BYTES = 1024 * 1024;

/** Whole lines from an offset on; a line that a crash cut short has no end and is skipped. */
async function* wholeLines(file: FileHandle, from: number): AsyncGenerator<Buffer[]> {
  const piece = Buffer.alloc(PIECE_BYTES);
  let rest: Buffer = Buffer.alloc(0);
  for (let at = from; ; ) {
    const { bytesRead } = await file.read(piece, 0, PIECE_BYTES, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    rest = Buffer.concat([rest, piece.subarray(0, bytesRead)]);
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = rest.indexOf(0x0a); end !== -1; end = rest.indexOf(0x0a, start)) {
      lines.push(rest.subarray(start, end));
      start = end + 1;
    }
    rest = rest.subarray(start);
    if (rest.length > MAX_LINE_BYTES) lines.push(rest);
    yield lines;
    if (rest.length > MAX_LINE_BYTES) return;
  }
}

const BEGIN = { end: 0, number: 0 };

async function* linesIn(log: LineLog, file: FileHandle, from = BEGIN): AsyncGenerator<LogLine> {
  const check = createLineCheck(log, from.number);
  let { end } = from;
  for await (const lines of wholeLines(file, from.end))
    for (const line of lines) {
      end += line.length + 1;
      yield check(line.toString(), end);
    }
}

/** All lines, also those with a problem; no lines if the file is missing. */
export async function* readLines(log: LineLog): AsyncGenerator<LogLine> {
  refuseLink(log.path);
  if (!pathExists(log.path)) return;
  const file = await open(log.path, READ);
  try {
    yield* linesIn(log, file);
  } finally {
    await file.close();
  }
}

/** The position up to which a file was read. */
export interface ReadTo {
  readonly inode: number;
  /** The size of the file, with a line that a crash cut short. */
  readonly size: number;
  readonly changedAt: number;
  /** Offset of the byte after the last whole line. */
  readonly end: number;
  readonly number: number;
}

/**
 * Reads the lines appended since `known`, or all lines if the file was replaced.
 * @param take gets each line; if it throws, the line counts as damaged
 * @returns null: the file never existed.
 * @throws {BrokenLog} for any problem, and when lines that were read are missing
 */
export async function readFrom(
  log: LineLog,
  position: ReadTo | null,
  take: (line: LogLine) => void,
): Promise<ReadTo | null> {
  refuseLink(log.path);
  if (!pathExists(log.path)) {
    if (position && position.number > 0) throw new BrokenLog(log, 'it was there, and the file is missing');
    return null;
  }
  return withClosing(open(log.path, READ), async (file) => {
    const { ino: inode, size, ctimeMs: changedAt } = await file.stat();
    const isSameInode = position?.inode === inode;
    if (isSameInode && position.size === size && position.changedAt === changedAt) return position;
    let { end, number } = isSameInode && size > position.size ? position : BEGIN;
    for await (const line of linesIn(log, file, { end, number })) {
      if (line.problem !== null) throw new BrokenLog(log, line.problem);
      if (!line.dropped && !succeeds(() => take(line)))
        throw new BrokenLog(log, `line ${line.number} is damaged`);
      ({ end, number } = line);
    }
    if (number < (position?.number ?? 0))
      throw new BrokenLog(log, `line ${position?.number} was there and is missing`);
    return { inode, size, changedAt, end, number };
  });
}

/**
 * The last whole line, and the offset of the next one.
 * @throws {BrokenLog} if the line does not belong to this log
 */
async function lastLine(log: LineLog, file: FileHandle) {
  const { size } = await file.stat();
  for (let length = PIECE_BYTES; ; length *= 2) {
    const from = Math.max(0, size - length);
    const tail = Buffer.alloc(size - from);
    await file.read(tail, 0, tail.length, from);
    const end = tail.lastIndexOf(0x0a);
    const start = end < 1 ? -1 : tail.lastIndexOf(0x0a, end - 1);
    if (from === 0 && end === -1) return BEGIN;
    if (from > 0 && start === -1 && length <= 2 * MAX_LINE_BYTES) continue;
    const opened = openLine(log, tail.toString('utf8', start + 1, Math.max(end, 0)));
    if (!opened?.isAuthentic) throw new BrokenLog(log, 'its last line was changed or is damaged');
    return { end: from + end + 1, number: opened.number };
  }
}

/**
 * Appends a line, which is on disk when this resolves. It reads only the last line, and cuts off a line that
 * a crash left incomplete.
 * @param next is called behind the lock; null appends nothing
 * @param atLeast the last number that is known from elsewhere: numbers of lines that were cut off are not
 * used again
 * @returns the number of the line.
 * @throws {BrokenLog} {Unavailable}
 */
export function appendLine(
  log: LineLog,
  next: () => Promise<object | null>,
  atLeast = 0,
): Promise<number | null> {
  return withFileLock(log.path, async () => {
    const body = await next();
    if (body === null) return null;
    createEmptyFile(log.path);
    return withClosing(open(log.path, APPEND), async (file) => {
      const last = await lastLine(log, file);
      const number = Math.max(last.number, atLeast) + 1;
      try {
        await file.truncate(last.end);
        await file.appendFile(`${sealLine(log, number, JSON.stringify(body))}\n`);
        await file.sync();
      } catch (error) {
        await file.truncate(last.end).catch(() => {});
        throw error;
      }
      return number;
    });
  });
}

interface Dated {
  readonly at: string;
}

/**
 * The lines of the file, with each run of dropped lines replaced by its count. The last line stays: the next
 * number follows from it.
 */
async function* withoutDropped(log: LineLog, isDropped: (body: Dated) => boolean): AsyncGenerator<string> {
  let droppedRun: (DroppedLines & { readonly number: number }) | null = null;
  const runOf = ({ dropped, body }: LogLine): DroppedLines | null => {
    if (dropped) return dropped;
    const line = JSON.parse(body) as Dated;
    return isDropped(line) ? { dropped: 1, until: line.at } : null;
  };
  const lineOrNone = (line: LogLine, isLast: boolean): string[] => {
    const run = isLast ? null : runOf(line);
    if (run) {
      const until = droppedRun && droppedRun.until > run.until ? droppedRun.until : run.until;
      droppedRun = { dropped: (droppedRun?.dropped ?? 0) + run.dropped, until, number: line.number };
      return [];
    }
    const marks = droppedRun
      ? [
          sealLine(
            log,
            droppedRun.number,
            JSON.stringify({ dropped: droppedRun.dropped, until: droppedRun.until }),
          ),
        ]
      : [];
    droppedRun = null;
    return [...marks, line.text];
  };
  let before: LogLine | null = null;
  for await (const line of readLines(log)) {
    if (line.problem !== null) throw new BrokenLog(log, line.problem);
    if (before) yield* lineOrNone(before, false);
    before = line;
  }
  if (before) yield* lineOrNone(before, true);
}

/**
 * Drops lines and leaves their count in place of each run. All other lines keep their numbers. If anything
 * fails, the file is unchanged.
 * @throws {BrokenLog} {Unavailable}
 */
export function dropLines(log: LineLog, isDropped: (body: Dated) => boolean): Promise<void> {
  return withFileLock(log.path, async () => {
    if (!pathExists(log.path)) return;
    const temporary = temporaryFile(unguessable(log.path));
    try {
      await withClosing(open(temporary, 'wx', 0o600), async (file) => {
        let waiting: string[] = [];
        const write = async (): Promise<void> => {
          await file.appendFile(waiting.map((line) => `${line}\n`).join(''));
          waiting = [];
        };
        for await (const line of withoutDropped(log, isDropped))
          if (waiting.push(line) === 1000) await write();
        await write();
        await file.sync();
        ownAsDirectory(file.fd, log.path);
      });
      renameSync(temporary, log.path);
    } finally {
      rmSync(temporary, { force: true });
    }
    syncPath(dirname(log.path));
  });
}

/** True while the file only grew since `earlier`. */
export const isSameFile = (earlier: LogFile, now: LogFile): boolean =>
  earlier.inode === now.inode && earlier.size <= now.size;

export type LogFile = ReturnType<typeof fileOf>;

export function fileOf({ path }: Pick<LineLog, 'path'>) {
  const { ino: inode = 0, size = 0 } = lstatSync(path, { throwIfNoEntry: false }) ?? {};
  return { inode, size };
}
