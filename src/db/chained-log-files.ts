import { constants, renameSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { closing } from '../lib/closing.ts';
import { works } from '../lib/or-else.ts';
import { afterLine, chainLine, NO_LINES, openLine } from './chained-line.ts';
import { NO_LINK, refuseLink, syncPath, temporaryFile, unguessable } from './durable-files.ts';
import { isThere, locked, makeEmpty, ownAsDirectory, serialise } from './shared-file-lock.ts';

/**
 * A file of chained lines (chained-line.ts) that only grows. A line that was changed, inserted, moved or removed is found by its
 * number. Lines cut off the end are not, until somebody has read them: the owner of such a file has to know its last line from
 * elsewhere. It is read in pieces, each line once, and never held in memory. Several processes may append.
 */

export class BrokenChain extends Error {
  override readonly name = 'BrokenChain';

  constructor(path: string, line: number, what: string) {
    super(`${path}: line ${line} ${what}`);
  }
}

export interface ChainedLogOptions {
  readonly path: string;
  readonly key: Uint8Array;
  readonly name: string;
  /**
   * Told of each line once, in order; of all of them again after another process rewrote the file. What it throws makes the line
   * a damaged one.
   */
  readonly onLine: (body: unknown) => void;
  /** Lines without a MAC may stand before the first line with one: the file is older than its chain. */
  readonly mayBeginBare?: boolean;
}

/** How far a file was read. */
interface Tail {
  readonly inode: number;
  readonly changedAt: number;
  readonly end: number;
  readonly lines: number;
  readonly hash: Buffer;
  /** Of the last line, without its MAC. */
  readonly body: string;
  readonly hasMac: boolean;
}

const BEGIN = { end: 0, lines: 0, hash: NO_LINES, body: '', hasMac: false };

/** @param bytes of the line, without its line end */
const behind = (at: Tail, bytes: Buffer, body: string, hasMac: boolean): Tail => ({
  ...at,
  end: at.end + bytes.length + 1,
  lines: at.lines + 1,
  hash: afterLine(at.hash, bytes),
  body,
  hasMac,
});

const READ = constants.O_RDONLY | NO_LINK;
const APPEND = constants.O_RDWR | constants.O_APPEND | NO_LINK;
const PIECE_BYTES = 64 * 1024;
/** Longer than any line of ours. */
const MAX_LINE_BYTES = 1024 * 1024;

/** Whole lines from an offset on; a line that a crash cut short has no end and is skipped. */
async function* wholeLines(file: FileHandle, from: number): AsyncGenerator<Buffer> {
  const piece = Buffer.alloc(PIECE_BYTES);
  let rest: Buffer = Buffer.alloc(0);
  for (let at = from; ; ) {
    const { bytesRead } = await file.read(piece, 0, PIECE_BYTES, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    rest = Buffer.concat([rest, piece.subarray(0, bytesRead)]);
    for (let end = rest.indexOf(0x0a); end !== -1; end = rest.indexOf(0x0a)) {
      yield rest.subarray(0, end);
      rest = rest.subarray(end + 1);
    }
    if (rest.length <= MAX_LINE_BYTES) continue;
    yield rest;
    return;
  }
}

type Take = (body: string, at: Tail) => void;

/** All complete lines after `from`, each checked against its MAC. */
async function readOn(options: ChainedLogOptions, file: FileHandle, from: Tail, take: Take): Promise<Tail> {
  const { path, key, name, mayBeginBare = false } = options;
  let at = from;
  for await (const bytes of wholeLines(file, from.end)) {
    const line = bytes.toString();
    const opened = openLine(key, name, at.hash, line);
    const lines = at.lines + 1;
    if (opened === 'changed') throw new BrokenChain(path, lines, 'was changed, or one before it is missing');
    if (opened === 'no-mac' && (at.hasMac || !mayBeginBare)) throw new BrokenChain(path, lines, 'is damaged');
    const body = opened === 'no-mac' ? line : opened.body;
    at = behind(at, bytes, body, opened !== 'no-mac');
    const read = at;
    if (!works(() => take(body, read))) throw new BrokenChain(path, lines, 'is damaged');
  }
  return at;
}

/** Reads all of a file that somebody else wrote since. What was read once must still be in it, and is not told again. */
async function follow(options: ChainedLogOptions, file: FileHandle, known: Tail | null): Promise<Tail> {
  const { path, onLine } = options;
  const { ino: inode, ctimeMs: changedAt } = await file.stat();
  const same = known?.inode === inode;
  if (same && known.changedAt === changedAt) return known;
  let seen = known === null || known.lines === 0;
  const tail = await readOn(options, file, { inode, changedAt, ...BEGIN }, (body, at) => {
    if (!same || at.lines > known.lines) onLine(JSON.parse(body));
    seen ||= same ? at.lines === known.lines && at.hash.equals(known.hash) : body === known?.body;
  });
  if (!seen) throw new BrokenChain(path, known?.lines ?? 0, 'was there and is missing');
  return tail;
}

/** Behind the lock, so that no other process is in the middle of what has no end. */
async function appendLine(options: ChainedLogOptions, file: FileHandle, tail: Tail, next: object) {
  const { key, name } = options;
  const body = JSON.stringify(next);
  const bytes = Buffer.from(chainLine(key, name, tail.hash, body));
  try {
    await file.truncate(tail.end);
    await file.appendFile(Buffer.concat([bytes, Buffer.from('\n')]));
    await file.sync();
  } catch (error) {
    await file.truncate(tail.end).catch(() => {});
    throw error;
  }
  const { ctimeMs: changedAt } = await file.stat();
  return behind({ ...tail, changedAt }, bytes, body, true);
}

async function writeAnew(
  options: ChainedLogOptions,
  file: FileHandle,
  tail: Tail | null,
  lines: { readonly keep: (body: unknown) => boolean; readonly more: readonly object[] },
): Promise<void> {
  const { path, key, name } = options;
  let before = NO_LINES;
  let waiting: string[] = [];
  const put = (body: string): void => {
    const line = chainLine(key, name, before, body);
    before = afterLine(before, Buffer.from(line));
    waiting.push(`${line}\n`);
  };
  if (tail) {
    const take: Take = (body, { lines: number }) => {
      if (number === tail.lines || lines.keep(JSON.parse(body))) put(body);
    };
    const begin = { inode: 0, changedAt: 0, ...BEGIN };
    await closing(open(path, READ), (old) => readOn(options, old, begin, take));
  }
  for (const body of lines.more) put(JSON.stringify(body));
  for (; waiting.length > 0; waiting = waiting.slice(1000))
    await file.appendFile(waiting.slice(0, 1000).join(''));
  await file.sync();
}

export function makeChainedLog(options: ChainedLogOptions) {
  const { path } = options;
  let tail: Tail | null = null;

  async function readFile(flags: number, then?: (file: FileHandle) => Promise<void>): Promise<void> {
    refuseLink(path);
    await closing(open(path, flags), async (file) => {
      tail = await follow(options, file, tail);
      await then?.(file);
    });
  }

  async function readWhereThere(): Promise<void> {
    if (isThere(path)) await readFile(READ);
    else if (tail) throw new BrokenChain(path, tail.lines, 'was there, and the file is missing');
  }

  return {
    /** Reads what another process appended; a missing file is empty. @throws {BrokenChain} */
    refresh: () => serialise(path, readWhereThere),
    /**
     * Durable before it returns. `next` is asked behind the lock, once all lines are read; null appends nothing.
     * @throws {BrokenChain} {Unavailable}
     */
    append: (next: () => object | null) =>
      locked(path, async () => {
        await readWhereThere();
        const body = next();
        if (body === null) return;
        makeEmpty(path);
        await readFile(APPEND, async (file) => {
          tail = await appendLine(options, file, tail as Tail, body);
        });
        options.onLine(JSON.parse(JSON.stringify(body)));
      }),
    /** Puts those lines that `keep` wants, the last one in any case, and then `more` in place of the file. @throws {BrokenChain} */
    rewrite: (keep: (body: unknown) => boolean, more: readonly object[] = []) =>
      locked(path, async () => {
        await readWhereThere();
        const temporary = temporaryFile(unguessable(path));
        await closing(open(temporary, 'wx', 0o600), async (file) => {
          await writeAnew(options, file, tail, { keep, more });
          ownAsDirectory(file.fd, path);
        });
        renameSync(temporary, path);
        syncPath(dirname(path));
        await readFile(READ);
      }),
  };
}
