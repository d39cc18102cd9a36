import type { Database } from './db.ts';
import { rowsOf } from './sql.ts';

/** Pages that rows left free go back to the disk in short transactions, where the file has auto_vacuum=INCREMENTAL. */

const INCREMENTAL = 2;
/** Less is left for the rows to come. */
const MIN_FREE_PAGES = 4096;
const MAX_FREE_PART = 0.1;
const STEP_PAGES = 64;
const MAX_STEPS = 1000;

async function pragma({ read }: Database, name: string): Promise<number> {
  const [row] = rowsOf<Record<string, unknown>>(await read.raw(`PRAGMA ${name}`));
  return Number(Object.values(row ?? {})[0] ?? 0);
}

export async function releaseFreePages(database: Database): Promise<void> {
  if (database.file === null || (await pragma(database, 'auto_vacuum')) !== INCREMENTAL) return;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const free = await pragma(database, 'freelist_count');
    if (free < Math.max(MIN_FREE_PAGES, MAX_FREE_PART * (await pragma(database, 'page_count')))) return;
    await database.transaction((tx) => tx.raw(`PRAGMA incremental_vacuum(${STEP_PAGES})`));
  }
}
