import type { Database } from '../../db/db.ts';
import type { TableName } from '../subject-data.ts';
import { tablesWhere } from '../subject-folds.ts';

/** Every id of a kind that a tenant's tables hold: a tombstone names its subject by a keyed reference alone. */

const PAGE = 5000;

async function* column(
  database: Database,
  kid: string,
  table: TableName,
  name: string,
): AsyncGenerator<string> {
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
  name: 'durable' | 'request_id',
): AsyncGenerator<string> {
  for (const table of tablesWhere(({ reapplied, names }) => reapplied && names.includes(name)))
    yield* column(database, kid, table, name);
}
