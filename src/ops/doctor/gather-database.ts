import { randomBytes } from 'node:crypto';
import { keepNoncesFrom, latestJobTime, readForgottenTo, readNewestTime } from '../../db/clock-rule-store.ts';
import type { Database } from '../../db/db.ts';
import { quickCheck } from '../../db/files.ts';
import { LAST_RETENTION, LAST_SWEEP, MOVED, MOVING, readMeta, readMetaNumber } from '../../db/meta-store.ts';
import { schemaState } from '../../db/migrate.ts';
import { readEpochLength } from '../../ingest/epoch-length-store.ts';
import { makeMasterKey, SERVER_SECRET } from '../../keys/master-key.ts';
import { HOUR } from '../../lib/clock.ts';
import { makeLostLines } from '../../rights/erase/ended.ts';
import { type OutsideLog, scanErasureLog } from '../../rights/erase/erasure-log.ts';
import { countOrphanRows } from '../../rights/tenant-rows-store.ts';
import { goingTenants } from '../../tenants/tenant-store.ts';
import { type Escrow, opens, readEscrow } from '../escrow.ts';
import { readJobFailures } from '../job-store.ts';
import { allWrapped } from '../rewrap-store.ts';
import {
  countOrphans,
  databaseVersion,
  expiredNonces,
  incompleteErasures,
  isEncrypted,
  lastBackupAt,
  missingTables,
  overdueContests,
  readDatabaseSettings,
  readPooling,
  unscrubbedSince,
} from './inspect-store.ts';

/** @throws when the database cannot be read at all */
export async function gatherDatabase(
  database: Database,
  { now, skewMs }: { readonly now: number; readonly skewMs: number },
  outside: OutsideLog | null,
) {
  const begun = performance.now();
  const version = await databaseVersion(database);
  const answerMs = performance.now() - begun;
  const { pending, unknown } = await schemaState(database);
  const missing = await missingTables(database);
  const unlessMissing = async <T, E>(look: () => Promise<T>, otherwise: E): Promise<T | E> =>
    missing.length === 0 ? look() : otherwise;
  const lost = await unlessMissing(() => makeLostLines(database, now), null);
  const scanned = outside && (await scanErasureLog(outside, lost?.take));
  const newestTime = await unlessMissing(() => readNewestTime(database), null);
  // A clock that is over a day ahead moves the time of jobs only slowly.
  const jobTime = newestTime !== null && latestJobTime(now, newestTime) < now ? newestTime : now;
  return {
    kind: database.kind,
    answerMs,
    version,
    settings: await readDatabaseSettings(database),
    integrity: database.kind === 'sqlite' ? await quickCheck(database) : [],
    foreignKeys: await countOrphans(database),
    pendingMigrations: pending,
    unknownMigrations: unknown,
    missingTables: missing,
    brokenErasureLog: scanned?.problem ?? null,
    encrypted: await isEncrypted(database),
    pooling: await readPooling(database),
    /** The database that a move went to; null: nobody moved this one. */
    movedTo: await unlessMissing(() => readMeta(database, MOVED), null),
    /** A move into this database was interrupted. */
    halfMoved: await unlessMissing(async () => (await readMeta(database, MOVING)) !== null, false),
    /** Rows of tenants that are not there, by kid. */
    orphans: await unlessMissing(() => countOrphanRows(database), []),
    goingTenants: await unlessMissing(() => goingTenants(database), []),
    expiredNonces: await unlessMissing(
      () => expiredNonces(database, keepNoncesFrom(jobTime, skewMs) - HOUR),
      0,
    ),
    lastBackupAt: await unlessMissing(() => lastBackupAt(database), null),
    /** Null: no server has started yet. */
    epochLength: await unlessMissing(() => readEpochLength(database), null),
    lastSweepAt: await unlessMissing(() => readMetaNumber(database, LAST_SWEEP), null),
    lastRetentionAt: await unlessMissing(() => readMetaNumber(database, LAST_RETENTION), null),
    jobFailures: await unlessMissing(() => readJobFailures(database), []),
    /** What a server committed last; null: no round yet. */
    newestTime,
    /** What a server's jobs have to have done by now was due by then. */
    jobTime,
    forgottenTo: await unlessMissing(() => readForgottenTo(database), null),
    /** Erasures that this database, restored, has not done yet. */
    undoneErasures: lost?.countErasures() ?? 0,
    /** Null: the tables are not there yet. */
    incompleteErasures: await unlessMissing(() => incompleteErasures(database, now), null),
    unscrubbedSince: await unlessMissing(() => unscrubbedSince(database), null),
    overdueContests: await unlessMissing(() => overdueContests(database, now), null),
  };
}

export interface Tried {
  /** Whether it opens the server's own secret; null: nobody could try. */
  readonly opens: boolean | null;
  /** Secrets of tenants, seal keys and webhooks that it does not open. */
  readonly unopened: readonly string[];
  /** The recovery key on paper; null: nobody confirmed one. */
  readonly escrow: Escrow | null;
}

export const UNTRIED: Tried = { opens: null, unopened: [], escrow: null };

/** Tries the master key on all that it should open. */
export async function tryMasterKey(database: Database, key: Buffer | null): Promise<Tried> {
  const wrapped = key && (await readMeta(database, SERVER_SECRET));
  if (!key || wrapped === null) return UNTRIED;
  const masterKey = makeMasterKey(key, randomBytes);
  const fits = opens(masterKey, wrapped);
  const all = fits ? await allWrapped(database.read) : [];
  const unopened = all.filter((secret) => !opens(masterKey, secret.wrapped, secret.context));
  const escrow = await readEscrow(database, masterKey);
  return { opens: fits, unopened: unopened.map(({ name }) => name), escrow };
}
