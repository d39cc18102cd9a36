import type { Knex } from 'knex';
import type { Database, Reader } from '../db/engine.ts';
import { cellOf } from '../db/sql.ts';
import { DAY } from '../lib/clock.ts';
import type { LogHead } from './entries-store.ts';

/** Checkpoints as rows: the last one in the head of its log, all of them in a table. */

export interface StoredCheckpoint {
  readonly text: string;
  readonly size: number;
  readonly signedAt: number;
}

/**
 * Stores a signed checkpoint in place of the one that its signer had read.
 * @returns false: another one was stored in between, here or on another node
 */
export async function putCheckpoint(
  tx: Knex.Transaction,
  kid: string,
  checkpoint: StoredCheckpoint,
  read: LogHead['checkpoint'],
): Promise<boolean> {
  const { text, size, signedAt } = checkpoint;
  const updated = await tx('ledger_heads')
    .where({ kid, checkpoint_size: read?.size ?? 0, checkpoint_at: read?.signedAt ?? 0 })
    .where('checkpoint_size', '<=', size)
    .update({ checkpoint: text, checkpoint_size: size, checkpoint_at: signedAt });
  if (updated !== 1) return false;
  // Ed25519 is deterministic: two nodes that sign one tree write one row.
  await tx('checkpoints')
    .insert({ kid, size, at: signedAt, note: text })
    .onConflict(['kid', 'size'])
    .ignore();
  return true;
}

const checkpointsOf = ({ read }: Reader, kid: string): Knex.QueryBuilder =>
  read('checkpoints').where({ kid }).select('size', { text: 'note', signedAt: 'at' });

export async function listCheckpoints(database: Reader, kid: string) {
  return (await checkpointsOf(database, kid).orderBy('size')) as StoredCheckpoint[];
}

/** The newest cosigned checkpoints over at least this many entries. */
export async function listCosigned(database: Reader, kid: string, atLeast: number) {
  const cosigned = checkpointsOf(database, kid).where('size', '>=', atLeast).whereNot({ cosignatures: '' });
  const newest = cosigned.orderBy('size', 'desc').limit(10);
  return newest.select<(StoredCheckpoint & { readonly lines: string })[]>({ lines: 'cosignatures' });
}

/** @param merge gets the stored lines, which another node may have extended */
export function addCosignatures(
  database: Database,
  kid: string,
  { size, text }: Pick<StoredCheckpoint, 'size' | 'text'>,
  merge: (lines: string) => readonly string[],
): Promise<void> {
  return database.transaction(async (tx) => {
    const about = { kid, size, note: text };
    const query = tx('checkpoints').where(about);
    const lines = await cellOf<string>(query.forUpdate(), 'cosignatures');
    if (lines === undefined) return;
    const merged = merge(lines).join('');
    await tx('checkpoints').where(about).update({ cosignatures: merged });
  });
}

/** Keeps one checkpoint a day per log, those of the last day, and the last one. */
export function thinCheckpoints(database: Database, now: number): Promise<number> {
  const sameDay =
    'later.kid = checkpoints.kid AND later.size > checkpoints.size AND later.at / ? = checkpoints.at / ?';
  return database.transaction((tx) =>
    tx('checkpoints')
      .where('at', '<', now - DAY)
      .whereExists(tx('checkpoints as later').whereRaw(sameDay, [DAY, DAY]))
      .delete(),
  );
}

/** Deletes checkpoints beyond the end of the log, after a loss that an operator accepted. */
export function forgetLaterCheckpoints(database: Database, kid: string): Promise<void> {
  return database.transaction(async (tx) => {
    const size = (await cellOf<number>(tx('ledger_heads').where({ kid }), 'size')) ?? 0;
    await tx('checkpoints').where({ kid }).where('size', '>', size).delete();
    const noCheckpoint = { checkpoint: null, checkpoint_size: 0, checkpoint_at: 0 };
    await tx('ledger_heads').where({ kid }).where('checkpoint_size', '>', size).update(noCheckpoint);
  });
}
