import type { Database } from '../db/db.ts';
import { bump } from '../db/revision.ts';
import { GOING } from '../db/tenant-hold.ts';
import { takeHead } from '../log/append-store.ts';
import { emptyTables } from './tenant-rows-store.ts';

/** Offboarding: the tenant's row first, with the tables that hang on it, then all of its rows in steps. */

/** A server that has not seen it yet refuses to write; one of an earlier release may write until it looks. */
const ROUNDS = 10;

/**
 * The tenant's row is deleted first, with its keys: running servers no longer answer for it while the rest follows, until a round finds
 * nothing. If interrupted, it continues when it is asked for again. Returns the rows by table, and whether there was anything at all.
 */
export async function removeTenant(
  database: Database,
  kid: string,
  {
    onGone = () => Promise.resolve(),
    onProgress = () => {},
  }: {
    /** The tenant's own row is gone, and the rest begins to follow. */
    readonly onGone?: () => Promise<void>;
    readonly onProgress?: (table: string) => void;
  } = {},
): Promise<Readonly<Record<string, number>> | null> {
  // Alone, or on PostgreSQL the next transaction waits for as long as batches that hold the row follow on each other.
  await database.transaction((tx) => tx('tenants').where({ kid }).update({ revision: GOING }));
  const existed = await database.transaction(async (tx) => {
    await bump(tx, 'tenants');
    // Before the row of the tenant: writers of the log lock them in this order.
    await takeHead(tx, kid);
    return (await tx('tenants').where({ kid }).delete()) === 1;
  });
  if (existed) await onGone();
  const counts = await emptyTables(database, kid, onProgress);
  for (let round = 1; round < ROUNDS; round += 1) {
    const more = Object.entries(await emptyTables(database, kid)).filter(([, count]) => count > 0);
    if (more.length === 0) break;
    for (const [table, count] of more) counts[table] = (counts[table] ?? 0) + count;
  }
  return existed || Object.values(counts).some((count) => count > 0) ? counts : null;
}
