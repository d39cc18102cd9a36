import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { errorCode } from './availability.ts';
import { requireSqlite } from './sqlite-client.ts';

/**
 * A kernel lock on an empty file, released when its process ends. Node has no API for it, so SQLite takes it: a read
 * transaction shares the file, an exclusive transaction excludes everybody (sqlite.org/lockingv3.html). A process that holds
 * one must not open and close the file itself: that drops the lock (docs/adr/0019).
 */

const require = createRequire(import.meta.url);

/** A shared lock waits longer: while an exclusive lock is pending, no new shared lock is granted. */
const TAKE = {
  shared: 'PRAGMA busy_timeout=2000; BEGIN; SELECT 1 FROM sqlite_master',
  // No journal file: nothing is ever written.
  exclusive: 'PRAGMA busy_timeout=500; PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE',
} as const;

export type Release = () => Promise<void>;

const called = (call: (done: (error: Error | null) => void) => unknown): Promise<void> =>
  new Promise((resolve, reject) => void call((error) => (error ? reject(error) : resolve())));

/** Null: another process holds it. @throws the driver's error when the file cannot be opened or is not empty */
export async function lockFile(path: string, how: keyof typeof TAKE): Promise<Release | null> {
  requireSqlite();
  // SQLite opens what it may not write for reading, and an exclusive transaction on that only shares it.
  if (how === 'exclusive') accessSync(path, constants.W_OK);
  const { Database, OPEN_READWRITE } = require('sqlite3') as typeof import('sqlite3');
  const connection = await new Promise<InstanceType<typeof Database>>((resolve, reject) => {
    const opened = new Database(path, OPEN_READWRITE, (error) => (error ? reject(error) : resolve(opened)));
  });
  const release: Release = () => called((done) => connection.close(done));
  try {
    await called((done) => connection.exec(TAKE[how], done));
    return release;
  } catch (error) {
    await release();
    if (errorCode(error as Error) === 'SQLITE_BUSY') return null;
    throw error;
  }
}
