import type { Knex } from 'knex';
import type { Database, Reader } from '../db/engine.ts';
import { cellOf } from '../db/sql.ts';
import { DAY } from '../lib/clock.ts';
import { tryLockHead } from './entries-store.ts';

/**
 * Checkpoints as rows, which all nodes share. A writer of the database can change them: the file of a node
 * shows that.
 */

export interface StoredCheckpoint {
  readonly text: string;
  readonly size: number;
  readonly signedAt: number;
}

/**
 * Stores a signed checkpoint that continues the newest one its signer had read. The head of the log stays
 * locked until the transaction ends, so two nodes never store at once.
 * @returns false: another checkpoint was stored in between, here or on another node
 */
export async function putCheckpoint(
  tx: Knex.Transaction,
  kid: string,
  { text, size, signedAt }: StoredCheckpoint,
  read: StoredCheckpoint | null,
): Promise<boolean> {
  const head = await tryLockHead(tx, kid);
  const newest = await newestCheckpoint({ read: tx }, kid);
  if (head instanceof Error || newest?.size !== read?.size || size <= (newest?.size ?? 0)) return false;
  await tx('checkpoints').insert({ kid, size, at: signedAt, note: text });
  return true;
}

const checkpointsOf = ({ read }: Reader, kid: string): Knex.QueryBuilder =>
  read('checkpoints').where({ kid }).select('size', { text: 'note', signedAt: 'at' });

/** The newest checkpoint that a node stored; null: none is left. */
export async function newestCheckpoint(database: Reader, kid: string): Promise<StoredCheckpoint | null> {
  const newest = checkpointsOf(database, kid).orderBy('size', 'desc');
  return (await newest.first<StoredCheckpoint | undefined>()) ?? null;
}

export async function listCheckpoints(database: Reader, kid: string) {
  return (await checkpointsOf(database, kid).orderBy('size')) as StoredCheckpoint[];
}

/**
 * The last checkpoint of each day (UTC) between two times, which thinning never deletes, and the one over
 * `size` entries, oldest first.
 */
export async function listDaily(
  database: Reader,
  kid: string,
  { from, to, size }: { readonly from: number; readonly to: number; readonly size: number },
) {
  const found = checkpointsOf(database, kid)
    .where('size', '<=', size)
    .where((rows) => {
      void rows.whereBetween('at', [from, to]).orWhere({ size });
    });
  const rows = await found
    .orderBy('size')
    .select<(StoredCheckpoint & { readonly lines: string })[]>({ lines: 'cosignatures' });
  const days = new Map(rows.map((row) => [Math.floor(Number(row.signedAt) / DAY), row]));
  return [...days.values()].map((row) => ({ ...row, size: Number(row.size) }));
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
  });
}
