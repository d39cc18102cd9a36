import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { errorCode } from './availability.ts';
import { requireSqlite } from './sqlite-client.ts';

/**
 * A lock of the kernel's on a file without a byte, which ends with its process. Node has none of its own, and SQLite's are
 * those: a read transaction shares the file, an exclusive one has it alone (sqlite.org/lockingv3.html). No code of a
 * process that holds one may open and close the file itself: that drops the lock (docs/adr/0019).
 */

const require = createRequire(import.meta.url);

/** Whoever shares waits longer: while an exclusive lock is waited for, nobody new gets in. */
const TAKE = {
  shared: 'PRAGMA busy_timeout=2000; BEGIN; SELECT 1 FROM sqlite_master',
  // No journal beside the file: nothing is ever written to it.
  exclusive: 'PRAGMA busy_timeout=500; PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE',
} as const;

export type Release = () => Promise<void>;

const called = (call: (done: (error: Error | null) => void) => unknown): Promise<void> =>
  new Promise((resolve, reject) => void call((error) => (error ? reject(error) : resolve())));

/** Null: another process has it. @throws the driver's error where the file cannot be opened, or is no such file */
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
