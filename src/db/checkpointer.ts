import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { runSqlite } from './sqlite-client.ts';

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

async function checkpoint(connection: Knex): Promise<void> {
  const [progress] = (await runSqlite(connection, 'PRAGMA wal_checkpoint(NOOP)', [])) as readonly Progress[];
  if (!progress || progress.log - progress.checkpointed < MIN_PAGES) return;
  await runSqlite(connection, 'PRAGMA wal_checkpoint(PASSIVE)', []);
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

/** @param connect to the same file; called once there is something to do */
export function makeCheckpointer(connect: () => Knex) {
  let connection: Knex | null = null;
  let commits = 0;
  let timer: NodeJS.Timeout | null = null;
  let running: Promise<void> | null = null;

  async function run(): Promise<void> {
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
      running = run();
    }, PAUSE_MS).unref();
  }

  return {
    /** A transaction was committed. */
    committed() {
      commits += 1;
      schedule();
    },
    async close() {
      commits = Number.NEGATIVE_INFINITY;
      if (timer) clearTimeout(timer);
      await running;
      await connection?.destroy();
    },
  };
}
