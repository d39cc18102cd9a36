import { channel } from 'node:diagnostics_channel';
import type { Knex } from 'knex';
import { driverError, errorCode, TenantGone, Unavailable } from '../lib/errors.ts';
import { isRefusal, READ_ONLY } from './availability.ts';
import type { Database, Reader } from './engine.ts';
import { cellOf, lockClause, runSql, type Transaction } from './sql.ts';

/** When the last backup was made, and how large it is. */
export const LAST_BACKUP = 'last-backup';
/** When the housekeeping of some node last left no job failing. */
export const LAST_SWEEP = 'last-sweep';
/** When retention last ran for every tenant. */
export const LAST_RETENTION = 'last-retention';
/** When a large SQLite file was last rewritten for an erasure, or was about to be. */
export const LAST_REWRITE = 'last-rewrite';
/** The target of a finished move: this database serves nobody any longer. */
export const MOVED = 'moved';
/** The progress of a move into this database: it serves nobody yet. */
export const MOVING = 'moving';
/** The master key whose recovery key was last confirmed, and when. */
export const ESCROW = 'master-key-escrow';

/** Reads one fact about the installation, for example the master key's check value. */
export async function readMeta(database: Reader, name: string): Promise<string | null> {
  return (await cellOf<string>(database.read('meta').where({ name }), 'value')) ?? null;
}

/** Reads a fact that is a number, usually a time. */
export async function readMetaNumber(database: Reader, name: string): Promise<number | null> {
  const value = await readMeta(database, name);
  return value === null ? null : Number(value);
}

export async function writeMeta(tx: Knex.Transaction, name: string, value: string): Promise<void> {
  await tx('meta').insert({ name, value }).onConflict('name').merge();
}

export async function dropMeta(tx: Knex.Transaction, name: string): Promise<void> {
  await tx('meta').where({ name }).delete();
}

/** @returns false when it already exists; the old value stays */
export async function addMeta(tx: Knex.Transaction, name: string, value: string): Promise<boolean> {
  if (await tx('meta').where({ name }).first('name')) return false;
  await writeMeta(tx, name, value);
  return true;
}

/** Each of these has its own revision counter. */
export type Revisioned = 'tenants' | 'agents';

/** Takes the next revision; the row lock orders concurrent writers, so that a poll never skips one. */
export async function bump(tx: Knex.Transaction, scope: Revisioned): Promise<number> {
  await tx('revisions').where({ scope }).increment('revision', 1);
  const row = await tx('revisions').where({ scope }).first<{ revision: number }>('revision');
  if (!row) throw new Error(`the table revisions has lost its row \`${scope}\``);
  return row.revision;
}

export async function readRevision(database: Database, scope: Revisioned): Promise<number> {
  return (await cellOf<number>(database.read('revisions').where({ scope }), 'revision')) ?? 0;
}

/**
 * Raises the revision of a tenant and takes its row lock, before the change reads anything of the tenant.
 * @returns false: no such tenant, or its removal has begun, which no change may revert
 */
export async function bumpTenant(tx: Knex.Transaction, kid: string): Promise<boolean> {
  const revision = await bump(tx, 'tenants');
  return (await tx('tenants').where({ kid }).where('revision', '>', REMOVING).update({ revision })) === 1;
}

/**
 * The revision of a tenant whose removal has begun. No new transaction locks it; earlier ones are waited for.
 */
export const REMOVING = -1;

/**
 * Locks the tenant's row until the transaction ends, so that no row outlives its tenant or passes to a later
 * one with the same kid.
 * @param since when the tenant was made, if known: a later tenant with its kid is another one
 * @returns false: no such tenant
 */
export async function tryLockTenant(tx: Transaction, kid: string, since?: number): Promise<boolean> {
  // A foreign key takes this lock too: a change of the tenant's settings does not wait for it.
  const lock = lockClause(tx, 'FOR KEY SHARE');
  const sql = `SELECT created_at AS since FROM tenants WHERE kid = ? AND revision > ${REMOVING} ${lock}`;
  const [row] = await runSql<{ since: number }>(tx, sql, [kid]);
  return row !== undefined && (since === undefined || Number(row.since) === since);
}

/** Locks the tenant's row until the transaction ends. @throws {TenantGone} */
export async function lockTenant(tx: Transaction, kid: string, since?: number): Promise<void> {
  if (!(await tryLockTenant(tx, kid, since))) throw new TenantGone();
}

/** The names of all tenants, in order, also where the rest of a row cannot be read. */
export function listKids({ read }: Reader): Promise<readonly string[]> {
  return read('tenants').orderBy('kid').pluck('kid');
}

/** Why the log of a tenant is not there: it left with its tenant, or it was lost. */
export async function missingLogError(db: Knex, kid: string): Promise<Error> {
  const rows = await runSql(db, 'SELECT kid FROM tenants WHERE kid = ?', [kid]);
  return rows.length === 0 ? new TenantGone() : new Error('a tenant has lost its log');
}

/** Diagnostics channel with the tenant of each row whose MAC was wrong; the log and the metrics subscribe. */
export const STATE_INVALID = 'gpd.consent-state-invalid';
const invalid = channel(STATE_INVALID);
export const reportInvalidState = (kid: string): void => invalid.publish(kid);

/** Somebody wrote a row without gpd's key. No decision is made from it. */
export class ConsentStateInvalid extends Unavailable {
  readonly code = 'consent-state-invalid';

  constructor(kid: string) {
    super('somebody changed a row of the consent ledger without gpd’s key');
    reportInvalidState(kid);
  }
}

/**
 * True when a read and a transaction that takes the writer both succeed, or when the database refuses:
 * restarting this process would not change a refusal. Does not resolve while a query hangs.
 */
export async function databaseAnswers(database: Database): Promise<boolean> {
  try {
    await database.read('meta').first('name');
    await database.transaction((tx) => tx('meta').first('name'));
    return true;
  } catch (error) {
    return isRefusal(error);
  }
}

/** @throws {Unavailable} */
export async function ping(database: Database): Promise<void> {
  await database.read.raw('SELECT 1');
}

/** Raises the error of a write, so that the pool drops a read-only connection. */
const AS_A_WRITE = `DO $$ BEGIN
  IF current_setting('transaction_read_only') = 'on' THEN RAISE SQLSTATE '${READ_ONLY}'; END IF;
END $$`;

/** False on a standby, which the pool may reach after a failover. @throws {Error} any other error */
export async function isWritable({ kind, read }: Database): Promise<boolean> {
  if (kind === 'sqlite') return true;
  try {
    await read.raw(AS_A_WRITE);
    return true;
  } catch (error) {
    if (errorCode(driverError(error)) === READ_ONLY) return false;
    throw error;
  }
}

/**
 * PostgreSQL's timeline, which changes with each promotion; null: SQLite, a standby, or no permission to read
 * it.
 */
export async function timelineOf({ kind, read }: Database): Promise<string | null> {
  if (kind === 'sqlite') return null;
  const sql = 'SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline';
  const { rows } = await read.raw<{ rows: { timeline: string }[] }>(sql).catch(() => ({ rows: [] }));
  return rows[0]?.timeline ?? null;
}

/** Names of the tables of a SQLite file. */
export function tablesOfFile({ read }: Database): Promise<readonly string[]> {
  return read('sqlite_master').where({ type: 'table' }).pluck('name');
}
