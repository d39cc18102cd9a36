import type { Database } from '../../db/db.ts';

/** Every id of a kind that a tenant's tables hold: a tombstone names its subject by a keyed reference alone. */

const TABLES = {
  durable: ['sightings', 'decisions', 'visitor_index', 'contests', 'overrides', 'network_days'],
  request_id: ['decisions', 'contests', 'links', 'signal_summaries'],
} as const;
const PAGE = 5000;

async function* column(database: Database, kid: string, table: string, name: string): AsyncGenerator<string> {
  for (let after = ''; ; ) {
    const ids = (await database
      .read(table)
      .where({ kid })
      .where(name, '>', after)
      .distinct(name)
      .orderBy(name)
      .limit(PAGE)
      .pluck(name)) as string[];
    yield* ids;
    const last = ids.at(-1);
    if (last === undefined || ids.length < PAGE) return;
    after = last;
  }
}

/** Ids come more than once when several tables hold them. */
export async function* heldIds(
  database: Database,
  kid: string,
  name: keyof typeof TABLES,
): AsyncGenerator<string> {
  for (const table of TABLES[name]) yield* column(database, kid, table, name);
}
