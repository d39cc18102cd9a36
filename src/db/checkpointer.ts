import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { runSqlite } from './sqlite.ts';

/**
 * A separate connection copies what the writer appended to the write-ahead log into the database file, a little at a
 * time. The writer's own checkpoint runs inside of a COMMIT, and copies and syncs thousands of pages while a batch waits;
 * it stays for the rest, and restarts the log once all of it is copied (sqlite.org/wal.html).
 */

const PAUSE_MS = 20;
/** A command that writes a few times has no need of another connection. */
const MIN_COMMITS = 8;
/** Fewer pages are left to be overwritten: one that changes often is copied once for all of its changes. */
const MIN_PAGES = 400;

interface Progress {
  readonly log: number;
  readonly checkpointed: number;
}

/** PASSIVE copies what it can while nobody waits, NOOP only says how far the log is copied. */
async function run(connection: Knex, mode: 'NOOP' | 'PASSIVE'): Promise<Progress> {
  const rows = (await runSqlite(connection, `PRAGMA wal_checkpoint(${mode})`, [])) as readonly Progress[];
  return rows[0] ?? { log: 0, checkpointed: 0 };
}

async function checkpoint(connection: Knex): Promise<void> {
  const { log, checkpointed } = await run(connection, 'NOOP');
  if (log - checkpointed >= MIN_PAGES) await run(connection, 'PASSIVE');
}

const TRUNCATE_TRIES = 8;
/** What the last step may still have to copy while the writer waits. */
const MAX_LEFT_PAGES = 200;
const PASSIVE_TRIES = 20;
const ANOTHER_MS = 50;

/** Copies the log without holding the writer, until little is left: for a large file this takes seconds. */
async function copyLog(connection: Knex): Promise<void> {
  for (let i = 0; i < PASSIVE_TRIES; i += 1) {
    const [before] = (await connection.raw('PRAGMA wal_checkpoint(NOOP)')) as Progress[];
    if (!before || before.log - before.checkpointed <= MAX_LEFT_PAGES) return;
    const [rows] = (await connection.raw('PRAGMA wal_checkpoint(PASSIVE)')) as { busy: number }[];
    // Another checkpoint is at it.
    if (rows?.busy !== 0) await sleep(ANOTHER_MS);
  }
}

/** The `busy` column says whether the log could be emptied (sqlite.org/pragma.html#pragma_wal_checkpoint). */
export async function truncateWal(connection: Knex): Promise<boolean> {
  await copyLog(connection);
  for (let i = 0; i < TRUNCATE_TRIES; i += 1) {
    const rows = (await connection.raw('PRAGMA wal_checkpoint(TRUNCATE)')) as { busy: number }[];
    if (rows[0]?.busy === 0) return true;
  }
  return false;
}

/** A log so long is copied whole before a long deletion continues. */
const LONG_PAGES = 1000;
const WHOLE_TRIES = 8;

/** Until all of it is copied: the next write then starts again at the top of the log. */
async function copyWhole(connection: Knex): Promise<void> {
  let { log, checkpointed } = await run(connection, 'NOOP');
  if (log < LONG_PAGES) return;
  for (let i = 0; i < WHOLE_TRIES && checkpointed < log; i += 1)
    ({ log, checkpointed } = await run(connection, 'PASSIVE'));
}

/** @param connect to the same file; called once there is something to do */
export function makeCheckpointer(connect: () => Knex) {
  let connection: Knex | null = null;
  let commits = 0;
  let timer: NodeJS.Timeout | null = null;
  let running: Promise<void> | null = null;

  async function copySome(): Promise<void> {
    commits = 0;
    connection ??= connect();
    try {
      await checkpoint(connection);
    } catch {
      // Another process is at it, or the disk is full: the writer meets that too, and says so.
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
    /** A transaction was committed. */
    committed() {
      commits += 1;
      schedule();
    },
    /** What a long deletion wrote, before it continues: else the log grows until a COMMIT has to copy it, a visitor's as well. */
    async copyLog() {
      await running;
      connection ??= connect();
      // As in `copySome`.
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
