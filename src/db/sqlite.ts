import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import knexModule, { type Knex } from 'knex';
import {
  ACQUIRE_TIMEOUT_MS,
  byKnex,
  closingPool,
  type DatabaseOptions,
  PATIENT,
  runTransaction,
  SILENT,
  snapshotOn,
  type TransactionOptions,
  type Work,
} from './availability.ts';
import {
  BUSY_MS,
  type Connection,
  immediateSqliteClient,
  type PlainTransaction,
  runPlainTransaction,
  runSqlite,
} from './sqlite-client.ts';

/**
 * SQLite as a Database: one writer, a few readers, and a checkpointer that keeps the write-ahead log short.
 */

const { knex } = knexModule;

const PRAGMAS = [
  // The first, because the others may have to wait for a second process.
  `PRAGMA busy_timeout=${BUSY_MS}`,
  'PRAGMA journal_mode=WAL',
  'PRAGMA synchronous=FULL',
  'PRAGMA foreign_keys=ON',
  'PRAGMA secure_delete=ON',
  // In pages. A rarer checkpoint writes a page that changed often only once.
  'PRAGMA wal_autocheckpoint=4000',
  'PRAGMA trusted_schema=OFF',
  // A large statement keeps pages for its rollback; the default is a temporary file outside gpd's directory.
  'PRAGMA temp_store=MEMORY',
];

type AfterCreate = (connection: Connection, done: (error: Error | null, c: unknown) => void) => void;

const configuring =
  (pragmas: readonly string[]): AfterCreate =>
  (connection, done) =>
    connection.exec(pragmas.join(';'), (error) => done(error, connection));
const configureSqlite = configuring(PRAGMAS);
/** Set before a new file has its first page. On each connection it would be a write. */
const configureNew = configuring(['PRAGMA auto_vacuum=INCREMENTAL', 'PRAGMA journal_mode=WAL']);
/** The writer waits in {@link beginImmediate}; inside a transaction nothing is busy. */
const configureWriter = configuring([...PRAGMAS, 'PRAGMA busy_timeout=0']);

/** Kept short, because the writer waits for this checkpoint. */
const CHECKPOINT_BUSY_MS = 250;
const VACUUM_BUSY_MS = 10_000;

const oneConnection = (base: Knex.Config, afterCreate: AfterCreate): Knex =>
  knex({ ...base, pool: { afterCreate, min: 1, max: 1 } });

/** A separate connection, so that the writer and the readers are not blocked. */
const withSqlite = <T>(
  base: Knex.Config,
  busyMs: number,
  work: (connection: Knex) => Promise<T>,
): Promise<T> =>
  closingPool(oneConnection(base, configureSqlite), async (connection) => {
    await connection.raw(`PRAGMA busy_timeout=${busyMs}`);
    return work(connection);
  });

export async function openSqlite(options: DatabaseOptions) {
  const base: Knex.Config = {
    client: immediateSqliteClient(),
    connection: { filename: options.location },
    useNullAsDefault: true,
    log: SILENT,
    acquireConnectionTimeout: ACQUIRE_TIMEOUT_MS,
  };
  if (!existsSync(options.location)) {
    if (options.create !== true) throw new Error('no database yet: run `gpd init` first');
    await closingPool(oneConnection(base, configureNew), (connection) => connection.raw('SELECT 1'));
  }
  const pool = { afterCreate: configureSqlite, idleTimeoutMillis: 2_147_483_647 };
  const writer = knex({ ...base, pool: { ...pool, afterCreate: configureWriter, min: 1, max: 1 } });
  const read = knex({ ...base, pool: { ...pool, min: 0, max: 4 } });
  const longRead = knex({ ...base, ...PATIENT, pool: { afterCreate: configureSqlite, min: 0, max: 1 } });
  const checkpointer = createCheckpointer(() => knex({ ...base, pool: { ...pool, min: 1, max: 1 } }));
  const quietTimer = createQuietTimer();
  const transaction = async <T>(work: Work<T>, transactionOptions?: TransactionOptions): Promise<T> => {
    const watched = quietTimer.watched(work, transactionOptions);
    const result = await runTransaction(byKnex(writer, transactionOptions), watched, options);
    checkpointer.committed();
    return result;
  };
  const plainTransaction = async <T>(work: Work<T, PlainTransaction>): Promise<T> => {
    quietTimer.wrote();
    const direct = (run: typeof work): Promise<T> => runPlainTransaction(writer, run);
    const result = await runTransaction(direct, work, options);
    checkpointer.committed();
    return result;
  };
  return {
    kind: 'sqlite' as const,
    read,
    longRead,
    snapshot: snapshotOn(read),
    transaction,
    plainTransaction,
    quietMs: quietTimer.ms,
    copyLog: () => checkpointer.copyLog(),
    longTransaction: transaction,
    file: options.location,
    truncateLog: () => withSqlite(base, CHECKPOINT_BUSY_MS, truncateWal),
    onOwnConnection: <T>(work: (connection: Knex) => Promise<T>) => withSqlite(base, VACUUM_BUSY_MS, work),
    vacuum: () =>
      withSqlite(base, VACUUM_BUSY_MS, async (connection) => {
        await connection.raw('VACUUM');
      }),
    async close() {
      try {
        await checkpointer.close();
        await longRead.destroy();
        await read.destroy();
        await writer.destroy();
      } finally {
        await options.afterClose?.();
      }
    },
  };
}

/**
 * The time since the last write to a SQLite file, without long deletions: in this process, or in another one,
 * whose commits `PRAGMA data_version` counts (sqlite.org/pragma.html).
 */
function createQuietTimer() {
  let wroteAt = Number.NEGATIVE_INFINITY;
  let dataVersion: number | undefined;
  function wrote(): void {
    wroteAt = performance.now();
  }
  async function noticeOtherWrites(tx: Knex.Transaction): Promise<void> {
    const [row] = (await runSqlite(tx, 'PRAGMA data_version', [])) as { data_version: number }[];
    if (dataVersion !== undefined && dataVersion !== row?.data_version) wrote();
    dataVersion = row?.data_version;
  }
  return {
    ms: () => performance.now() - wroteAt,
    wrote,
    /** Only a repeatable deletion looks for other writers; anything else counts as a write. */
    watched<T>(work: Work<T>, options: TransactionOptions | undefined): Work<T> {
      if (options?.repeatable !== true) {
        wrote();
        return work;
      }
      return async (tx) => {
        await noticeOtherWrites(tx);
        return work(tx);
      };
    },
  };
}

/**
 * A separate connection copies pages from the write-ahead log into the database file, a little at a time. The
 * writer's own checkpoint runs inside a COMMIT while a batch waits; it copies only the rest, and restarts the
 * log once all of it is copied (sqlite.org/wal.html).
 */

const PAUSE_MS = 20;
/** A command that writes a few times needs no second connection. */
const MIN_COMMITS = 8;
/** Fewer pages stay in the log: a page that changes often is then copied once for all of its changes. */
const MIN_PAGES = 400;

interface Progress {
  readonly log: number;
  readonly checkpointed: number;
}

/** PASSIVE copies while nobody waits; NOOP only returns how far the log is copied. */
async function runCheckpoint(connection: Knex, mode: 'NOOP' | 'PASSIVE'): Promise<Progress> {
  const rows = (await runSqlite(connection, `PRAGMA wal_checkpoint(${mode})`, [])) as readonly Progress[];
  return rows[0] ?? { log: 0, checkpointed: 0 };
}

async function checkpointIfLong(connection: Knex): Promise<void> {
  const { log, checkpointed } = await runCheckpoint(connection, 'NOOP');
  if (log - checkpointed >= MIN_PAGES) await runCheckpoint(connection, 'PASSIVE');
}

const TRUNCATE_TRIES = 8;
/** The most pages that the last step may copy while the writer waits. */
const MAX_LEFT_PAGES = 200;
const PASSIVE_TRIES = 20;
const ANOTHER_MS = 50;

/** Copies the log without blocking the writer, until few pages are left: seconds for a large file. */
async function copyMostOfLog(connection: Knex): Promise<void> {
  for (let i = 0; i < PASSIVE_TRIES; i += 1) {
    const [progress] = (await connection.raw('PRAGMA wal_checkpoint(NOOP)')) as Progress[];
    if (!progress || progress.log - progress.checkpointed <= MAX_LEFT_PAGES) return;
    const [rows] = (await connection.raw('PRAGMA wal_checkpoint(PASSIVE)')) as { busy: number }[];
    // Another checkpoint is running.
    if (rows?.busy !== 0) await sleep(ANOTHER_MS);
  }
}

/**
 * The `busy` column shows whether the log could be emptied (sqlite.org/pragma.html#pragma_wal_checkpoint).
 */
async function truncateWal(connection: Knex): Promise<boolean> {
  await copyMostOfLog(connection);
  for (let i = 0; i < TRUNCATE_TRIES; i += 1) {
    const rows = (await connection.raw('PRAGMA wal_checkpoint(TRUNCATE)')) as { busy: number }[];
    if (rows[0]?.busy === 0) return true;
  }
  return false;
}

/** A log of this many pages is copied whole before a long deletion continues. */
const LONG_PAGES = 1000;
const WHOLE_TRIES = 8;

/** Copies until nothing is left: the next write then starts at the top of the log. */
async function copyWhole(connection: Knex): Promise<void> {
  let { log, checkpointed } = await runCheckpoint(connection, 'NOOP');
  if (log < LONG_PAGES) return;
  for (let i = 0; i < WHOLE_TRIES && checkpointed < log; i += 1)
    ({ log, checkpointed } = await runCheckpoint(connection, 'PASSIVE'));
}

/** @param connect to the same file; called once there is something to do */
export function createCheckpointer(connect: () => Knex) {
  let connection: Knex | null = null;
  let commits = 0;
  let timer: NodeJS.Timeout | null = null;
  let running: Promise<void> | null = null;

  async function copySome(): Promise<void> {
    commits = 0;
    connection ??= connect();
    try {
      await checkpointIfLong(connection);
    } catch {
      // Another process checkpoints, or the disk is full: the writer meets that too, and reports it.
    }
    running = null;
    schedule();
  }

  function schedule(): void {
    if (commits < MIN_COMMITS || timer || running) return;
    timer = setTimeout(() => {
      timer = null;
      running = copySome();
    }, PAUSE_MS).unref();
  }

  return {
    committed() {
      commits += 1;
      schedule();
    },
    /**
     * A long deletion calls this before it continues: otherwise the log grows until some visitor's COMMIT has
     * to copy it.
     */
    async copyLog() {
      await running;
      connection ??= connect();
      // The writer meets and reports the same error, see `copySome`.
      await copyWhole(connection).catch(() => {});
    },
    async close() {
      commits = Number.NEGATIVE_INFINITY;
      if (timer) clearTimeout(timer);
      await running;
      await connection?.destroy();
    },
  };
}
