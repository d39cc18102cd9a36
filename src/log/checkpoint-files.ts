import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { BrokenChain, type ChainedLogOptions, makeChainedLog } from '../db/chained-log-files.ts';
import { type Checkpoint, signedCheckpoint } from '../ledger/checkpoint.ts';
import { DAY, isoTime } from '../lib/clock.ts';
import { hmacSha256 } from '../lib/hash.ts';

/**
 * DATA_DIR/checkpoints.log: what this node has signed, or seen signed, of every log. A writer of the database alone cannot
 * write it; the last line of a log is what its next checkpoint has to extend (docs/adr/0039).
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
  /** Names the log: a tenant that is made again has another. */
  vkey: z.string(),
  note: z.string(),
  /** Lines above may be of a longer log: entries were lost, and the operator went on without them. */
  lost: z.literal(true).optional(),
});
type Line = z.infer<typeof lineSchema>;

/** What this node has signed, or seen signed, of every log. */
export type CheckpointBook = ReturnType<typeof makeCheckpointBook>;

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

async function readAll(options: Pick<ChainedLogOptions, 'path' | 'key' | 'name'>, vkey: string) {
  let kept: KeptCheckpoint[] = [];
  const onLine = (body: unknown): void => {
    const line = lineSchema.parse(body);
    if (line.vkey !== vkey) return;
    const next = toKept(line);
    if (line.lost) kept = kept.filter(({ size }) => size < next.size);
    kept.push(next);
  };
  await makeChainedLog({ ...options, onLine }).refresh();
  return kept;
}

/** Which lines stay: the first of each log and day, those of the last day, the last one, and losses. */
function oneADay(now: number, lastNote: (vkey: string) => string | undefined): (body: unknown) => boolean {
  const days = new Map<string, string>();
  return (body) => {
    const { vkey, at, note, lost } = lineSchema.parse(body);
    const day = at.slice(0, 10);
    const first = days.get(vkey) !== day;
    days.set(vkey, day);
    return first || lost === true || now - Date.parse(at) < DAY || note === lastNote(vkey);
  };
}

export function makeCheckpointBook(dataDir: string, serverSecret: Uint8Array, thinFrom = THIN_BYTES) {
  const path = checkpointFile(dataDir);
  const seen = { last: new Map<string, Line & { kept?: KeptCheckpoint }>(), bytes: 0, lines: 0 };
  let thinAt = thinFrom;
  const options = { path, key: hmacSha256(serverSecret, 'gpd/checkpoints/v1'), name: 'gpd/checkpoints/v1' };
  const log = makeChainedLog({
    ...options,
    onLine(body) {
      const line = lineSchema.parse(body);
      seen.last.set(line.vkey, line);
      seen.bytes += line.note.length;
      seen.lines += 1;
    },
  });

  async function refresh(): Promise<void> {
    await log.refresh();
    // Its lock stays for ever: the file was begun here.
    if (seen.lines === 0 && existsSync(`${path}.lock`))
      throw new BrokenChain(path, 1, 'was there once, and the file is missing or empty');
  }
  return {
    /** Of this log; all lines are read. @throws {BrokenChain} also where the file was there once and is missing */
    async last(vkey: string) {
      await refresh();
      const line = seen.last.get(vkey);
      if (line) line.kept ??= toKept(line);
      return line?.kept ?? null;
    },
    /** All of a log, oldest first, without those that a loss made void. */
    async all(vkey: string) {
      await refresh();
      return readAll(options, vkey);
    },
    /** Appends a checkpoint. False: another process appended one of this log since `after` was read. */
    async keep(kept: NewCheckpoint, after: KeptCheckpoint | null) {
      let done = true;
      await log.append(() => {
        done = seen.last.get(kept.vkey)?.note === after?.text;
        return done ? toLine(kept) : null;
      });
      return done;
    },
    /** Records that a log continues with fewer entries than were signed, after a restore or accept-loss. */
    async keepAfterLoss(kept: readonly NewCheckpoint[]) {
      for (const checkpoint of kept) await log.append(() => ({ ...toLine(checkpoint), lost: true }));
    },
    /** Where it has grown large: of each log one line a day, and those of the last day. */
    async thin(now: number) {
      if (seen.bytes < thinAt) return;
      const keep = oneADay(now, (vkey) => seen.last.get(vkey)?.note);
      seen.bytes = 0;
      seen.lines = 0;
      await log.rewrite(keep);
      thinAt = Math.max(thinFrom, 2 * seen.bytes);
    },
  };
}
