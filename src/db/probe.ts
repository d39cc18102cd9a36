import { isRefusal } from './availability.ts';
import type { Database } from './db.ts';

/**
 * Whether reader and writer answer: a read, and a transaction that takes the writer and writes nothing. A refusal of the
 * database is an answer: to start this process anew would not change it. Does not settle while a query hangs.
 */
export async function answers(database: Database): Promise<boolean> {
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

/** Names of the tables of a SQLite file. */
export function tablesOfFile({ read }: Database): Promise<readonly string[]> {
  return read('sqlite_master').where({ type: 'table' }).pluck('name');
}
