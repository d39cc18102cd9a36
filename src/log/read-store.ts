import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { decodeFrontier, type Frontier, frontierRoot } from '../ledger/frontier.ts';
import type { HashReader } from '../ledger/proofs.ts';
import { pagesBy } from '../lib/chunks.ts';

/** Reading a tenant's log: heads, entries, hashes for proofs, checkpoints. */

/** The rows of a log do not fit each other. */
export class LogDamaged extends Error {}

export interface LogHead {
  readonly origin: string;
  readonly vkey: string;
  readonly size: number;
  readonly root: Buffer;
  readonly frontier: Frontier;
  readonly checkpoint: { readonly text: string; readonly size: number; readonly signedAt: number } | null;
}

interface HeadRow extends Pick<LogHead, 'origin' | 'vkey' | 'size'> {
  readonly frontier: string;
  readonly checkpoint: string | null;
  readonly checkpoint_size: number;
  readonly checkpoint_at: number;
}

export async function readHead(database: Pick<Database, 'read'>, kid: string): Promise<LogHead | null> {
  const row = await database.read('ledger_heads').where({ kid }).first<HeadRow | undefined>();
  if (!row) return null;
  const frontier = decodeFrontier(row.frontier);
  if (frontier?.size !== Number(row.size)) throw new LogDamaged('the head of a log was altered');
  const { origin, vkey, checkpoint } = row;
  return {
    origin,
    vkey,
    size: frontier.size,
    root: frontierRoot(frontier),
    frontier,
    checkpoint:
      checkpoint === null
        ? null
        : { text: checkpoint, size: Number(row.checkpoint_size), signedAt: Number(row.checkpoint_at) },
  };
}

/** Hashes by tile level: 0 are the leaves, 1 the roots of 256 entries, and so on. */
export function makeHashReader(database: Database, kid: string): HashReader {
  return {
    async read(level, start, end) {
      const [table, within, column] =
        level === 0 ? ['ledger_entries', { kid }, 'seq'] : ['ledger_blocks', { kid, level }, 'block'];
      const rows = database
        .read(table)
        .where(within)
        .whereBetween(column, [start, end - 1])
        .orderBy(column);
      const hashes = (await rows.pluck('hash')) as string[];
      if (hashes.length !== end - start) throw new LogDamaged('a log has lost entries');
      return hashes.map((hash) => Buffer.from(hash, 'hex'));
    },
  };
}

export interface StoredEntry {
  readonly seq: number;
  readonly hash: string;
  readonly entry: string;
}

const PAGE = 500;

/** Entries as NDJSON, without holding the log in memory. */
export async function* entryLines(database: Database, kid: string): AsyncGenerator<string> {
  const next = (last?: StoredEntry) => readEntries(database, kid, last ? last.seq + 1 : 0, PAGE);
  for await (const page of pagesBy(PAGE, next)) for (const one of page) yield `${JSON.stringify(one)}\n`;
}

const entriesFrom = ({ read }: Database, kid: string, start: number, limit: number) =>
  read('ledger_entries').where({ kid }).where('seq', '>=', start).orderBy('seq').limit(limit);

/** Entries from `start`, at most `limit` of them. */
export async function readEntries(database: Database, kid: string, start: number, limit: number) {
  const rows = await entriesFrom(database, kid, start, limit).select<StoredEntry[]>('seq', 'hash', 'entry');
  return rows.map(({ seq, hash, entry }) => ({ seq: Number(seq), hash, entry }));
}

export interface MacedRow extends StoredEntry {
  readonly mac: string | null;
}

/** The same, each with its MAC: not for anybody outside. */
export async function readMacedEntries(database: Database, kid: string, start: number, limit: number) {
  const found = entriesFrom(database, kid, start, limit);
  const rows = await found.select<MacedRow[]>('seq', 'hash', 'entry', 'mac');
  return rows.map((row) => ({ ...row, seq: Number(row.seq) }));
}

/** The texts of all entries from `start` on: of what was appended since a walk. */
export async function textsSince(db: Knex, kid: string, start: number): Promise<readonly string[]> {
  return db('ledger_entries').where({ kid }).where('seq', '>=', start).pluck('entry');
}
