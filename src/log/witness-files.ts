import { join } from 'node:path';
import { z } from 'zod';
import { BrokenChain, makeChainedLog } from '../db/chained-log-files.ts';
import { type Checkpoint, parseCheckpoint, parseHash } from '../ledger/checkpoint.ts';
import { parseNote } from '../ledger/note.ts';
import { DAY, isoTime } from '../lib/clock.ts';
import { hmacSha256 } from '../lib/hash.ts';

/**
 * DATA_DIR/witness.log: the logs that this gpd is a witness of, what it last cosigned of each, and what it refused. Its first
 * line has half of the witness's key, so that there is no key without what it signed (docs/adr/0044).
 */

const text = z.string();
const head = z.object({ v: z.literal(1), at: text });
const lineSchema = z.discriminatedUnion('event', [
  head.extend({ event: z.literal('key'), name: text, salt: text }),
  head.extend({ event: z.literal('log'), origin: text, vkey: text }),
  head.extend({ event: z.literal('cosigned'), note: text }),
  head.extend({
    event: z.literal('refused'),
    kept: text,
    refused: text,
    proof: z.array(text),
    proven: z.boolean(),
  }),
]);
export type WitnessLine = z.infer<typeof lineSchema>;
export type Refused = Extract<WitnessLine, { event: 'refused' }>;

export type WitnessedTree = Pick<Checkpoint, 'size' | 'root'>;

export interface WitnessedLog {
  readonly origin: string;
  readonly vkey: string;
  /** Null: nothing yet. */
  last: (WitnessedTree & { readonly note: string; readonly at: string }) | null;
  /** What was cosigned, by size; old ones are thinned. */
  readonly notes: Map<number, string>;
  readonly refused: Map<string, Refused>;
}

export interface Witnessing {
  key: { readonly name: string; readonly salt: string } | null;
  readonly logs: Map<string, WitnessedLog>;
}

/** The first three lines of a note's text; extension lines may follow (C2SP tlog-checkpoint). */
export function treeOf(text: string): Checkpoint | null {
  const lines = text.split('\n');
  const isWhole = lines.at(-1) === '' && lines.slice(0, -1).every((line) => line !== '');
  return isWhole ? parseCheckpoint(`${lines.slice(0, 3).join('\n')}\n`) : null;
}

export function treeIn(note: string): Checkpoint {
  const tree = treeOf(parseNote(note)?.text ?? '');
  if (!tree) throw new TypeError('not a checkpoint');
  return tree;
}

function take({ logs }: Witnessing, line: Exclude<WitnessLine, { event: 'key' }>): void {
  if (line.event === 'log') {
    const { origin, vkey } = line;
    if (!logs.has(origin))
      logs.set(origin, { origin, vkey, last: null, notes: new Map(), refused: new Map() });
    return;
  }
  const tree = treeIn(line.event === 'cosigned' ? line.note : line.refused);
  const log = logs.get(tree.origin);
  if (!log) throw new TypeError('not a log of this witness');
  if (line.event === 'refused') log.refused.set(line.refused, line);
  else {
    log.notes.set(tree.size, line.note);
    if (tree.size >= (log.last?.size ?? 0)) log.last = { ...tree, note: line.note, at: line.at };
  }
}

export type WitnessBook = ReturnType<typeof makeWitnessBook>;

const THIN_BYTES = 8 * 1024 * 1024;

export function makeWitnessBook(dataDir: string, serverSecret: Uint8Array) {
  const path = join(dataDir, 'witness.log');
  const known: Witnessing = { key: null, logs: new Map() };
  let bytes = 0;
  const log = makeChainedLog({
    path,
    key: hmacSha256(serverSecret, 'gpd/witness-log/v1'),
    name: 'gpd/witness-log/v1',
    onLine(body) {
      const line = lineSchema.parse(body);
      bytes += JSON.stringify(line).length;
      if (line.event !== 'key') take(known, line);
      else if (known.key && known.key.salt !== line.salt)
        throw new BrokenChain(path, 1, 'is of another witness');
      else known.key = { name: line.name, salt: line.salt };
    },
  });
  return {
    /** As the file is now; the same object, which is to be read at once. @throws {BrokenChain} */
    async read() {
      await log.refresh();
      return known;
    },
    /** Durable before it returns; `next` is asked behind the lock, once all lines are read. @throws {BrokenChain} {Unavailable} */
    append: (next: (known: Witnessing) => WitnessLine | null) => log.append(() => next(known)),
    /** Of each log what was cosigned in the last day stays, and the last one. */
    async thin(now: number) {
      if (bytes < THIN_BYTES) return;
      bytes = 0;
      const isOld = (line: WitnessLine): boolean =>
        line.event === 'cosigned' &&
        line.at < isoTime(now - DAY) &&
        line.note !== known.logs.get(treeIn(line.note).origin)?.last?.note;
      await log.rewrite((body) => !isOld(lineSchema.parse(body)));
    },
  };
}

/** A proof's lines as they are kept. */
export const parseHashes = (lines: readonly string[]): Buffer[] | null => {
  const hashes = lines.map(parseHash).filter((hash) => hash !== null);
  return hashes.length === lines.length ? hashes : null;
};
