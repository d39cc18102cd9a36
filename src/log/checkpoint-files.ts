import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import {
  appendLine,
  BrokenLog,
  dropLines,
  type LineLog,
  type ReadTo,
  readFrom,
  readLines,
} from '../db/line-log.ts';
import { serialise } from '../db/lock-files.ts';
import { type Checkpoint, signedCheckpoint } from '../ledger/note.ts';
import { DAY, isoTime } from '../lib/clock.ts';
import { hmacSha256 } from '../lib/crypto.ts';
import { tryOr } from '../lib/errors.ts';

/**
 * DATA_DIR/checkpoints.log: the checkpoints of each log that this node has signed or seen. A writer of the
 * database alone cannot change it. The next checkpoint of a log has to extend its last line.
 */

export function checkpointFile(dataDir: string): string {
  return join(dataDir, 'checkpoints.log');
}

export interface KeptCheckpoint extends Checkpoint {
  /** The signed note. */
  readonly text: string;
  readonly signedAt: number;
}

const lineSchema = z.object({
  v: z.literal(1),
  at: z.string(),
  tenant: z.string(),
  /** Names the log: a tenant that is made again has a different key. */
  vkey: z.string(),
  note: z.string(),
  /** Set when the operator accepted a loss of entries: lines above may belong to a longer log. */
  lost: z.literal(true).optional(),
});
type Line = z.infer<typeof lineSchema>;

/** All checkpoints that this node has signed or seen. */
export type CheckpointBook = ReturnType<typeof createCheckpointBook>;

export interface NewCheckpoint {
  readonly kid: string;
  readonly vkey: string;
  readonly text: string;
  readonly signedAt: number;
}

const THIN_BYTES = 8 * 1024 * 1024;

const toLine = ({ kid, vkey, text, signedAt }: NewCheckpoint): Line => ({
  v: 1,
  at: isoTime(signedAt),
  tenant: kid,
  vkey,
  note: text,
});

function toKept({ vkey, note, at }: Line): KeptCheckpoint {
  const checkpoint = signedCheckpoint(note, vkey);
  if (!checkpoint) throw new Error('a kept checkpoint is not signed by its log');
  return { ...checkpoint, text: note, signedAt: Date.parse(at) };
}

/** All lines of a log, except those that a later loss made void. */
async function readAll(log: LineLog, vkey: string): Promise<KeptCheckpoint[]> {
  let checkpoints: KeptCheckpoint[] = [];
  for await (const { body, dropped, problem } of readLines(log)) {
    if (problem !== null) throw new BrokenLog(log, problem);
    if (dropped) continue;
    const line = lineSchema.parse(JSON.parse(body));
    if (line.vkey !== vkey) continue;
    const next = toKept(line);
    if (line.lost) checkpoints = checkpoints.filter(({ size }) => size < next.size);
    checkpoints.push(next);
  }
  return checkpoints;
}

/**
 * Selects lines to drop. The first line of each log and day stays, and so do those of the last day, the last
 * one, and losses.
 */
function createThinning(now: number, lastNote: (vkey: string) => string | undefined) {
  const days = new Map<string, string>();
  return (body: unknown): boolean => {
    const { vkey, at, note, lost: isAfterLoss } = lineSchema.parse(body);
    const day = at.slice(0, 10);
    const first = days.get(vkey) !== day;
    days.set(vkey, day);
    return !(first || isAfterLoss === true || now - Date.parse(at) < DAY || note === lastNote(vkey));
  };
}

/** The last line of each log as the file is now. */
function createFollower(log: LineLog) {
  const lastLines = new Map<string, Line & { kept?: KeptCheckpoint }>();
  let readTo: ReadTo | null = null;
  async function read(): Promise<void> {
    readTo = await readFrom(log, readTo, ({ body }) => {
      const line = lineSchema.parse(JSON.parse(body));
      lastLines.set(line.vkey, line);
    });
  }
  async function refresh(): Promise<void> {
    await serialise(log.path, read);
    // The lock file is never removed, so it shows that the log existed.
    if ((readTo?.number ?? 0) === 0 && existsSync(`${log.path}.lock`))
      throw new BrokenLog(log, 'it was there once, and the file is missing or empty');
  }
  return {
    /** Call it behind the file lock, or behind {@link serialise}. */
    read,
    refresh,
    lastLine: (vkey: string) => lastLines.get(vkey),
    bytes: (): number => readTo?.size ?? 0,
  };
}

export function createCheckpointBook(dataDir: string, serverSecret: Uint8Array, thinFrom = THIN_BYTES) {
  const name = 'gpd/checkpoints/v1';
  const log: LineLog = { path: checkpointFile(dataDir), key: hmacSha256(serverSecret, name), name };
  const { read, refresh, lastLine, bytes } = createFollower(log);
  let thinAt = thinFrom;
  let onKept: (kid: string) => void = () => {};

  /** @param wants called behind the lock, once all lines are read */
  async function append(line: Line, wants = (): boolean => true): Promise<boolean> {
    const next = async (): Promise<Line | null> => {
      await read();
      return wants() ? line : null;
    };
    return (await appendLine(log, next)) !== null;
  }
  return {
    /**
     * The last line of this log; all lines are read.
     * @throws {BrokenLog} also when the file existed once and is missing
     */
    async last(vkey: string) {
      await refresh();
      const line = lastLine(vkey);
      if (line) line.kept ??= toKept(line);
      return line?.kept ?? null;
    },
    /** All checkpoints of a log, oldest first, except those that a loss made void. */
    async all(vkey: string) {
      await refresh();
      return readAll(log, vkey);
    },
    /** Appends a checkpoint. False: another process appended one of this log since `after` was read. */
    async keep(checkpoint: NewCheckpoint, after: Pick<KeptCheckpoint, 'text'> | null): Promise<boolean> {
      const isKept = await append(toLine(checkpoint), () => lastLine(checkpoint.vkey)?.note === after?.text);
      if (isKept) onKept(checkpoint.kid);
      return isKept;
    },
    /** Calls `listener` after each checkpoint that this process stored, so that witnesses are asked. */
    onKept(listener: (kid: string) => void): void {
      onKept = listener;
    },
    /** Records that a log continues with fewer entries than were signed, after a restore or accept-loss. */
    async keepAfterLoss(checkpoints: readonly NewCheckpoint[]) {
      for (const checkpoint of checkpoints) await append({ ...toLine(checkpoint), lost: true });
    },
    /** Thins a large file to one line per log and day, plus those of the last day. */
    async thin(now: number) {
      if (bytes() < thinAt) return;
      await dropLines(
        log,
        createThinning(now, (vkey) => lastLine(vkey)?.note),
      );
      await serialise(log.path, read);
      thinAt = Math.max(thinFrom, 2 * bytes());
    },
  };
}

/** Finds signed notes (C2SP tlog-checkpoint): name, size, root, an empty line, and signature lines. */
function notesIn(lines: readonly string[]): string[] {
  const isSignature = (line: string | undefined): boolean => line?.startsWith('\u2014 ') === true;
  return lines.flatMap((_, i) => {
    const [, size = '', , empty, first] = lines.slice(i, i + 5);
    if (!/^\d+$/.test(size) || empty !== '' || !isSignature(first)) return [];
    let end = i + 5;
    while (isSignature(lines[end])) end += 1;
    return [`${lines.slice(i, end).join('\n')}\n`];
  });
}

/**
 * Checkpoints of the log with this key, from a file that somebody stored: signed notes, or lines of a
 * checkpoints.log, whose MACs cannot be checked without that installation's key. Notes of other keys are
 * ignored.
 */
export function readKeptNotes(text: string, vkey: string): Checkpoint[] {
  const lines = text.split('\n');
  const inLines = lines.flatMap((line) => tryOr(() => [lineSchema.parse(JSON.parse(line)).note], []));
  return [...notesIn(lines), ...inLines].flatMap((note) => signedCheckpoint(note, vkey) ?? []);
}
