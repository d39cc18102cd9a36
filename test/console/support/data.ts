import { join } from 'node:path';
import type { Knex } from 'knex';
import { openDatabase } from '../../../src/db/engine.ts';
import type { Console } from './console.ts';

/** Changes stored times, for due dates, idle sessions and expired claims. */
export async function change(site: Console, work: (tx: Knex.Transaction) => Promise<unknown>): Promise<void> {
  const database = await openDatabase({ location: join(site.gpd.dataDir, 'gpd.db') });
  try {
    await database.transaction(work);
  } finally {
    await database.close();
  }
}

export async function rows<Row = Record<string, unknown>>(site: Console, table: string): Promise<Row[]> {
  const database = await openDatabase({ location: join(site.gpd.dataDir, 'gpd.db') });
  try {
    return (await database.read(table).select('*')) as Row[];
  } finally {
    await database.close();
  }
}

/** Makes a session idle for 31 minutes. */
export function idle(site: Console, label: string): Promise<void> {
  return change(site, (tx) =>
    tx('console_sessions')
      .where({ label })
      .update({ seen_at: Date.now() - 31 * 60_000 }),
  );
}
