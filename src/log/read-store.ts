import type { Database } from '../db/db.ts';
import { decodeFrontier, type Frontier, frontierRoot } from '../ledger/frontier.ts';
import type { HashReader } from '../ledger/proofs.ts';

/** Reading a tenant's log: heads, entries, hashes for proofs, checkpoints. */

export interface LogHead {
  readonly origin: string;
  readonly vkey: string;
  readonly size: number;
  readonly root: Buffer;
  readonly frontier: Frontier;
  readonly checkpoint: { readonly text: string; readonly size: number; readonly signedAt: number } | null;
}

interface HeadRow {
  readonly kid: string;
  readonly origin: string;
  readonly vkey: string;
  readonly size: number;
  readonly frontier: string;
  readonly checkpoint: string | null;
  readonly checkpoint_size: number;
  readonly checkpoint_at: number;
}

export async function readHead(database: Pick<Database, 'read'>, kid: string): Promise<LogHead | null> {
  const row = await database.read<HeadRow>('ledger_heads').where({ kid }).first();
  if (!row) return null;
  const frontier = decodeFrontier(row.frontier);
  if (frontier?.size !== Number(row.size)) throw new Error('the head of a log was altered');
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

/**
 * Keeps a signed checkpoint in place of the one that its signer had read.
 * @returns false: somebody else signed in between, here or on another node
 */
export async function saveCheckpoint(
  database: Database,
  kid: string,
  checkpoint: { readonly text: string; readonly size: number; readonly signedAt: number },
  read: LogHead['checkpoint'],
): Promise<boolean> {
  const { text, size, signedAt } = checkpoint;
  const unchanged = { kid, checkpoint_size: read?.size ?? 0, checkpoint_at: read?.signedAt ?? 0 };
  const updated = await database.transaction((tx) =>
    tx('ledger_heads')
      .where(unchanged)
      .where('checkpoint_size', '<=', size)
      .update({ checkpoint: text, checkpoint_size: size, checkpoint_at: signedAt }),
  );
  return updated === 1;
}

/** Hashes by tile level: 0 are the leaves, 1 the roots of 256 entries, and so on. */
export function makeHashReader(database: Database, kid: string): HashReader {
  return {
    async read(level, start, end) {
      const range = [start, end - 1] as const;
      const rows: readonly { hash: string }[] =
        level === 0
          ? await database
              .read('ledger_entries')
              .where({ kid })
              .whereBetween('seq', range)
              .orderBy('seq')
              .select('hash')
          : await database
              .read('ledger_blocks')
              .where({ kid, level })
              .whereBetween('block', range)
              .orderBy('block')
              .select('hash');
      if (rows.length !== end - start) throw new Error('a log has lost entries');
      return rows.map((row) => Buffer.from(row.hash, 'hex'));
    },
  };
}

export interface StoredEntry {
  readonly seq: number;
  readonly hash: string;
  readonly entry: string;
}

/** Entries from `start`, at most `limit` of them. */
export async function readEntries(
  database: Database,
  kid: string,
  start: number,
  limit: number,
): Promise<readonly StoredEntry[]> {
  const rows = await database
    .read('ledger_entries')
    .where({ kid })
    .where('seq', '>=', start)
    .orderBy('seq')
    .limit(limit)
    .select<StoredEntry[]>('seq', 'hash', 'entry');
  return rows.map(({ seq, hash, entry }) => ({ seq: Number(seq), hash, entry }));
}
