import type { Database } from './db.ts';
import { purge } from './purge.ts';

const WEEK_DAYS = 7;

/**
 * Marks are salted hashes that live for their day (UTC) and no longer;
 * counts live for the week they are asked about.
 */
export async function purgeNetworks(database: Database, today: number): Promise<void> {
  const before = (table: string, key: readonly string[], day: number): Promise<number> =>
    purge(database, table, key, (rows) => rows.where('day', '<', day));
  await before('network_marks', ['day', 'kid', 'durable', 'network'], today);
  await before('network_days', ['day', 'kid', 'durable'], today - WEEK_DAYS);
  await before('network_totals', ['kid', 'day', 'shard'], today - WEEK_DAYS);
}
