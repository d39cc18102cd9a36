import { DAY } from '../lib/clock.ts';
import type { Database } from './db.ts';
import { purge } from './purge.ts';

const WEEK_DAYS = 7;

/**
 * Marks are salted hashes that live for their day (UTC) and no longer;
 * counts live for the week they are asked about.
 * @param steady for the counts, which nobody can make again
 */
export async function purgeNetworks(database: Database, now: number, steady: number): Promise<void> {
  const today = Math.floor(now / DAY);
  const weekAgo = Math.floor(steady / DAY) - WEEK_DAYS;
  const before = (table: string, key: readonly string[], day: number): Promise<number> =>
    purge(database, table, key, (rows) => rows.where('day', '<', day));
  await before('network_marks', ['day', 'kid', 'durable', 'network'], today);
  await before('network_days', ['day', 'kid', 'durable'], weekAgo);
  await before('network_totals', ['kid', 'day', 'shard'], weekAgo);
}
