import type { Knex } from 'knex';
import type { Database } from './db.ts';
import { cellOf } from './sql.ts';

/** When the last backup was made, and how large it is. */
export const LAST_BACKUP = 'last-backup';
/** When the housekeeping of some node last left no job failing. */
export const LAST_SWEEP = 'last-sweep';
/** When retention last ran for every tenant. */
export const LAST_RETENTION = 'last-retention';
/** When a large SQLite file was last rewritten for an erasure, or was about to be. */
export const LAST_REWRITE = 'last-rewrite';
/** Where this database was moved to: it serves nobody any more. */
export const MOVED = 'moved';
/** How far a move has filled this database: it serves nobody yet. */
export const MOVING = 'moving';
/** Which master key's recovery key was last confirmed, and when. */
export const ESCROW = 'master-key-escrow';

/** Facts about the installation itself: the master key's check value and the wrapped server secret. */
export async function readMeta(database: Pick<Database, 'read'>, name: string): Promise<string | null> {
  return (await cellOf<string>(database.read('meta').where({ name }), 'value')) ?? null;
}

/** The same of what is a number: a time as a rule. */
export async function readMetaNumber(database: Pick<Database, 'read'>, name: string): Promise<number | null> {
  const value = await readMeta(database, name);
  return value === null ? null : Number(value);
}

export async function writeMeta(tx: Knex.Transaction, name: string, value: string): Promise<void> {
  await tx('meta').insert({ name, value }).onConflict('name').merge();
}

export async function dropMeta(tx: Knex.Transaction, name: string): Promise<void> {
  await tx('meta').where({ name }).delete();
}

/** @returns false when it is there already, and stays */
export async function addMeta(tx: Knex.Transaction, name: string, value: string): Promise<boolean> {
  if (await tx('meta').where({ name }).first('name')) return false;
  await writeMeta(tx, name, value);
  return true;
}
