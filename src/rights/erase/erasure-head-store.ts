import type { Knex } from 'knex';
import { chainLine, NO_LINES, openLine } from '../../db/chained-line.ts';
import type { Database } from '../../db/db.ts';
import { readMeta, writeMeta } from '../../db/meta-store.ts';
import { firstOf, type LogHead } from './erasure-chain-service.ts';

/** What the database knows of DATA_DIR/erasures.log: lines cut off its end are found by it. */

const NAME = 'erasures-head';

/** Nodes on one PostgreSQL have a log each, named by its first line; of a file that is missing whole none of them can tell. */
const nameOf = (kind: Database['kind'], first: string): string =>
  kind === 'sqlite' ? NAME : `${NAME} ${first.slice(0, 16)}`;

function open(key: Uint8Array, value: string | null): LogHead | 'changed' | null {
  if (value === null) return null;
  const opened = openLine(key, NAME, NO_LINES, value);
  return typeof opened === 'object' ? (JSON.parse(opened.body) as LogHead) : 'changed';
}

/** Null: it knows nothing. */
export async function readLogHead(
  database: Pick<Database, 'kind' | 'read'>,
  key: Uint8Array,
  lines: readonly string[],
): Promise<LogHead | 'changed' | null> {
  return open(key, await readMeta(database, nameOf(database.kind, firstOf(lines))));
}

/** Of a database that a restore makes ready. */
export const putLogHead = (tx: Knex.Transaction, key: Uint8Array, head: LogHead): Promise<void> =>
  writeMeta(tx, NAME, chainLine(key, NAME, NO_LINES, JSON.stringify(head)));

/** Never lower than it was: two appends may come to this in another order. */
export function saveLogHead(database: Database, key: Uint8Array, head: LogHead): Promise<void> {
  const name = nameOf(database.kind, head.first);
  return database.transaction(async (tx) => {
    const known = open(key, await readMeta({ read: tx }, name));
    const lines = known === null || known === 'changed' ? 0 : known.lines;
    if (lines < head.lines) await writeMeta(tx, name, chainLine(key, NAME, NO_LINES, JSON.stringify(head)));
  });
}
