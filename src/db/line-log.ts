import { constants, lstatSync, renameSync, rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { equalBytes, hmacSha256Text } from '../lib/crypto.ts';
import { closing, works } from '../lib/functions.ts';
import {
  isThere,
  locked,
  makeEmpty,
  NO_LINK,
  ownAsDirectory,
  refuseLink,
  syncPath,
  temporaryFile,
  unguessable,
} from './files.ts';

/**
 * A file of numbered lines. Each is JSON with its number and a MAC over the name of the log, the number and the rest. So a line that was
 * changed, removed, repeated, moved, or taken from another log or installation is found. Lines cut off the end are found by who knows the last
 * number from elsewhere. It is read in pieces and never held in memory. Several processes may append.
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
  /** Whether its MAC is right. */
  readonly isAuthentic: boolean;
  readonly dropped: DroppedLines | null;
  /** In words, with the number; null: the line is authentic and follows on the one before it. */
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
export function makeLineCheck(log: Omit<LineLog, 'path'>, last = 0) {
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
/** Longer than any line of ours. */
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
  const check = makeLineCheck(log, from.number);
  let { end } = from;
  for await (const lines of wholeLines(file, from.end))
    for (const line of lines) {
      end += line.length + 1;
      yield check(line.toString(), end);
    }
}

/** All lines, also those with a problem; none where the file is missing. */
export async function* readLines(log: LineLog): AsyncGenerator<LogLine> {
  refuseLink(log.path);
  if (!isThere(log.path)) return;
  const file = await open(log.path, READ);
  try {
    yield* linesIn(log, file);
  } finally {
    await file.close();
  }
}

/** How far a file was read. */
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
 * Reads what was appended since, and all lines of a file that was put in place of the one that was read.
 * @param take is handed each line; what it throws makes the line a damaged one
 * @returns null: the file is missing and always was. @throws {BrokenLog} for any problem, and where lines are gone that were read
 */
export async function readOn(
  log: LineLog,
  known: ReadTo | null,
  take: (line: LogLine) => void,
): Promise<ReadTo | null> {
  refuseLink(log.path);
  if (!isThere(log.path)) {
    if (known && known.number > 0) throw new BrokenLog(log, 'it was there, and the file is missing');
    return null;
  }
  return closing(open(log.path, READ), async (file) => {
    const { ino: inode, size, ctimeMs: changedAt } = await file.stat();
    const same = known?.inode === inode;
    if (same && known.size === size && known.changedAt === changedAt) return known;
    let { end, number } = same && size > known.size ? known : BEGIN;
    for await (const line of linesIn(log, file, { end, number })) {
      if (line.problem !== null) throw new BrokenLog(log, line.problem);
      if (!line.dropped && !works(() => take(line)))
        throw new BrokenLog(log, `line ${line.number} is damaged`);
      ({ end, number } = line);
    }
    if (number < (known?.number ?? 0))
      throw new BrokenLog(log, `line ${known?.number} was there and is missing`);
    return { inode, size, changedAt, end, number };
  });
}

/** The last whole line, and where the next one begins. @throws {BrokenLog} it is not of this log */
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
 * Appends a line, which is on disk before this returns. Of the file it reads the last line alone, and cuts off what a crash left of another.
 * @param next is asked behind the lock; null appends nothing
 * @param atLeast the last number that is known from elsewhere: the numbers of lines that were cut off are not given again
 * @returns the number of the line. @throws {BrokenLog} {Unavailable}
 */
export function appendLine(
  log: LineLog,
  next: () => Promise<object | null>,
  atLeast = 0,
): Promise<number | null> {
  return locked(log.path, async () => {
    const body = await next();
    if (body === null) return null;
    makeEmpty(log.path);
    return closing(open(log.path, APPEND), async (file) => {
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

/** The lines of the file with what is to go replaced by its count. The last line stays: the next number follows from it. */
async function* withoutDropped(log: LineLog, isDropped: (body: Dated) => boolean): AsyncGenerator<string> {
  let gone: (DroppedLines & { readonly number: number }) | null = null;
  const runOf = ({ dropped, body }: LogLine): DroppedLines | null => {
    if (dropped) return dropped;
    const line = JSON.parse(body) as Dated;
    return isDropped(line) ? { dropped: 1, until: line.at } : null;
  };
  const lineOrNone = (line: LogLine, isLast: boolean): string[] => {
    const run = isLast ? null : runOf(line);
    if (run) {
      const until = gone && gone.until > run.until ? gone.until : run.until;
      gone = { dropped: (gone?.dropped ?? 0) + run.dropped, until, number: line.number };
      return [];
    }
    const marks = gone
      ? [sealLine(log, gone.number, JSON.stringify({ dropped: gone.dropped, until: gone.until }))]
      : [];
    gone = null;
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
 * Drops lines, and says in place of each run how many there were. The others keep their numbers. Where anything fails, the file stays as it was.
 * @throws {BrokenLog} {Unavailable}
 */
export function dropLines(log: LineLog, isDropped: (body: Dated) => boolean): Promise<void> {
  return locked(log.path, async () => {
    if (!isThere(log.path)) return;
    const temporary = temporaryFile(unguessable(log.path));
    try {
      await closing(open(temporary, 'wx', 0o600), async (file) => {
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

/** Whether this is still the file that `known` was, with all that was in it. */
export const isSameFile = (known: LogFile, now: LogFile): boolean =>
  known.inode === now.inode && known.size <= now.size;

export type LogFile = ReturnType<typeof fileOf>;

export function fileOf({ path }: Pick<LineLog, 'path'>) {
  const { ino: inode = 0, size = 0 } = lstatSync(path, { throwIfNoEntry: false }) ?? {};
  return { inode, size };
}
