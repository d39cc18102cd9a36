import type { Database } from '../db/engine.ts';

/**
 * Stores the salt of each day in `meta`, where all nodes share it. After it is deleted, no hash under it can
 * be recomputed.
 */

const PREFIX = 'day-salt ';

/**
 * Keeps the salts of these days, makes those that are missing and deletes all others.
 * @returns base64url by day
 */
export function renewDaySalts(
  database: Database,
  days: readonly number[],
  createSalt: () => string,
): Promise<ReadonlyMap<number, string>> {
  const names = days.map((day) => `${PREFIX}${day}`);
  return database.transaction(async (tx) => {
    await tx('meta').where('name', 'like', `${PREFIX}%`).whereNotIn('name', names).delete();
    // If two nodes insert a salt at the same time, the first one stays.
    for (const name of names)
      await tx('meta').insert({ name, value: createSalt() }).onConflict('name').ignore();
    const rows: { name: string; value: string }[] = await tx('meta').whereIn('name', names);
    return new Map(rows.map(({ name, value }) => [Number(name.slice(PREFIX.length)), value]));
  });
}
