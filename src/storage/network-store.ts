import type { Database } from './db.ts';

const WEEK_DAYS = 7;

/**
 * Marks are salted hashes that live for their day (UTC) and no longer;
 * counts live for the week they are asked about.
 */
export async function purgeNetworks(database: Database, today: number): Promise<void> {
  await database.transaction((tx) => tx('network_marks').where('day', '<', today).delete());
  await database.transaction((tx) =>
    tx('network_days')
      .where('day', '<', today - WEEK_DAYS)
      .delete(),
  );
  await database.transaction((tx) =>
    tx('network_totals')
      .where('day', '<', today - WEEK_DAYS)
      .delete(),
  );
}
