import type { Database } from '../db/engine.ts';

/** Salts of days, in `meta`: all nodes share them, and what was hashed under a deleted one is beyond recomputing. */

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
    // Of two nodes that make one at once, the first is kept.
    for (const name of names)
      await tx('meta').insert({ name, value: createSalt() }).onConflict('name').ignore();
    const rows: { name: string; value: string }[] = await tx('meta').whereIn('name', names);
    return new Map(rows.map(({ name, value }) => [Number(name.slice(PREFIX.length)), value]));
  });
}
