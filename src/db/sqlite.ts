import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { byKnex, createBuilder } from './builder.ts';
import { runSql } from './sql.ts';
import { BUSY_MS, connect, createPool, requireSqlite, type SqliteConnection } from './sqlite-client.ts';
import {
  ACQUIRE_TIMEOUT_MS,
  type DatabaseOptions,
  PATIENT_MS,
  readerOn,
  runTransaction,
  type TransactionOptions,
  transactOn,
  type Work,
} from './transaction.ts';

/**
 * SQLite as a Database: one writer, a few readers, and a checkpointer that keeps the write-ahead log short.
 */

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

/** Set before a new file has its first page. On each connection it would be a write. */
const NEW = ['PRAGMA auto_vacuum=INCREMENTAL', 'PRAGMA journal_mode=WAL', 'SELECT 1'];
/** The writer waits in `beginImmediate`; inside a transaction nothing is busy. */
const WRITER = [...PRAGMAS, 'PRAGMA busy_timeout=0'];

/** Kept short, because the writer waits for this checkpoint. */
const CHECKPOINT_BUSY_MS = 250;
const VACUUM_BUSY_MS = 10_000;

/** A separate connection, so that the writer and the readers are not blocked. */
async function withConnection<T>(
  file: string,
  busyMs: number,
  work: (connection: SqliteConnection) => Promise<T>,
): Promise<T> {
  const connection = await connect(file, [...PRAGMAS, `PRAGMA busy_timeout=${busyMs}`]);
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

export async function openSqlite(options: DatabaseOptions) {
  requireSqlite();
  const file = options.location;
  if (!existsSync(file)) {
    if (options.create !== true) throw new Error('no database yet: run `gpd init` first');
    await (await connect(file, NEW)).close();
  }
  const writer = createPool(file, WRITER, { max: 1, waitMs: ACQUIRE_TIMEOUT_MS });
  const readers = createPool(file, PRAGMAS, { max: 4, waitMs: ACQUIRE_TIMEOUT_MS });
  const longReaders = createPool(file, PRAGMAS, { max: 1, waitMs: PATIENT_MS });
  const checkpointer = createCheckpointer(() => connect(file, PRAGMAS));
  const quietTimer = createQuietTimer();
  async function transaction<T>(work: Work<T>, { repeatable = false }: TransactionOptions = {}): Promise<T> {
    const transact = transactOn('sqlite', writer, repeatable ? 'repeatable' : 'write');
    const result = await runTransaction(transact<T>, quietTimer.watched(work, repeatable), options);
    checkpointer.committed();
    return result;
  }
  const onOwnConnection = <T>(work: (connection: Knex) => Promise<T>): Promise<T> =>
    withConnection(file, VACUUM_BUSY_MS, ({ ask }) => work(createBuilder('sqlite', ask)));
  return {
    kind: 'sqlite' as const,
    read: readerOn('sqlite', readers),
    longRead: readerOn('sqlite', longReaders),
    snapshot: transactOn('sqlite', readers, 'snapshot'),
    transaction,
    quietMs: quietTimer.ms,
    copyLog: () => checkpointer.copyLog(),
    longTransaction: transaction,
    migration: <T>(work: Work<T>): Promise<T> =>
      withConnection(file, VACUUM_BUSY_MS, ({ driver }) =>
        runTransaction((run) => byKnex('sqlite', driver, run), takingWriter(work), options),
      ),
    file,
    backend: () => Promise.resolve(null),
    truncateLog: () => withConnection(file, CHECKPOINT_BUSY_MS, truncateWal),
    onOwnConnection,
    vacuum: () =>
      onOwnConnection(async (connection) => {
        await connection.raw('VACUUM');
      }),
    async close() {
      try {
        await checkpointer.close();
        await longReaders.close();
        await readers.close();
        await writer.close();
      } finally {
        await options.afterClose?.();
      }
    },
  };
}

/**
 * Knex begins without a lock, so the first statement is a write: it changes nothing and takes SQLite's
 * writer.
 */
const takingWriter =
  <T>(work: Work<T>): Work<T> =>
  async (tx) => {
    await tx.raw('PRAGMA user_version = 0');
    return work(tx);
  };

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
    const [row] = await runSql<{ data_version: number }>(tx, 'PRAGMA data_version', []);
    if (dataVersion !== undefined && dataVersion !== row?.data_version) wrote();
    dataVersion = row?.data_version;
  }
  return {
    ms: () => performance.now() - wroteAt,
    wrote,
    /** Only a repeatable deletion looks for other writers; anything else counts as a write. */
    watched<T>(work: Work<T>, isRepeatable: boolean): Work<T> {
      if (!isRepeatable) {
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
  readonly busy: number;
  readonly log: number;
  readonly checkpointed: number;
}

/**
 * PASSIVE copies while nobody waits; TRUNCATE then empties the log; NOOP only returns how far the log is
 * copied. The `busy` column shows whether it could be done (sqlite.org/pragma.html#pragma_wal_checkpoint).
 */
async function runCheckpoint(
  { ask }: SqliteConnection,
  mode: 'NOOP' | 'PASSIVE' | 'TRUNCATE',
): Promise<Progress> {
  const { rows } = await ask(`PRAGMA wal_checkpoint(${mode})`, [], 'few');
  return (rows as readonly Progress[])[0] ?? { busy: 1, log: 0, checkpointed: 0 };
}

const ANOTHER_MS = 50;

/** Copies the log without blocking the writer, until so few pages are left: seconds for a large file. */
async function copyPages(connection: SqliteConnection, pagesLeft: number, tries: number): Promise<void> {
  for (let i = 0; i < tries; i += 1) {
    const { log, checkpointed } = await runCheckpoint(connection, 'NOOP');
    if (log - checkpointed <= pagesLeft) return;
    const { busy } = await runCheckpoint(connection, 'PASSIVE');
    // Another checkpoint is running.
    if (busy !== 0) await sleep(ANOTHER_MS);
  }
}

const TRUNCATE_TRIES = 8;
/** The most pages that the last step may copy while the writer waits. */
const MAX_LEFT_PAGES = 200;
const PASSIVE_TRIES = 20;

async function truncateWal(connection: SqliteConnection): Promise<boolean> {
  await copyPages(connection, MAX_LEFT_PAGES, PASSIVE_TRIES);
  for (let i = 0; i < TRUNCATE_TRIES; i += 1)
    if ((await runCheckpoint(connection, 'TRUNCATE')).busy === 0) return true;
  return false;
}

/** A log of this many pages is copied whole before a long deletion continues. */
const LONG_PAGES = 1000;
const WHOLE_TRIES = 8;

/** Copies until nothing is left: the next write then starts at the top of the log. */
async function copyWhole(connection: SqliteConnection): Promise<void> {
  const { log } = await runCheckpoint(connection, 'NOOP');
  if (log >= LONG_PAGES) await copyPages(connection, 0, WHOLE_TRIES);
}

/** @param open connects to the same file; called once there is something to do */
export function createCheckpointer(open: () => Promise<SqliteConnection>) {
  let opening: Promise<SqliteConnection> | null = null;
  let commits = 0;
  let timer: NodeJS.Timeout | null = null;
  let running: Promise<void> | null = null;

  function connected(): Promise<SqliteConnection> {
    opening ??= open().catch((error: unknown) => {
      opening = null;
      throw error;
    });
    return opening;
  }

  async function copySome(): Promise<void> {
    commits = 0;
    try {
      await copyPages(await connected(), MIN_PAGES, 1);
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
      // The writer meets and reports the same error, see `copySome`.
      await connected()
        .then(copyWhole)
        .catch(() => {});
    },
    async close() {
      commits = Number.NEGATIVE_INFINITY;
      if (timer) clearTimeout(timer);
      await running;
      await (await opening)?.close();
    },
  };
}
