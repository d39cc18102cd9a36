import type { Knex } from 'knex';
import type { Database } from './db.ts';
import { cellOf } from './sql.ts';

/**
 * What time takes away goes in small steps, each a transaction of its own: whoever waits for the writer gets it in
 * between. A step that took longer than a group commit makes the next one smaller.
 */

/** What a step may hold the writer for: about as long as a group commit does. */
const STEP_MS = 10;
const FIRST = 250;
const LEAST = 10;
const MOST = 4000;

function nextRows(rows: number, took: number): number {
  if (took > STEP_MS) return Math.max(LEAST, Math.floor(rows / 2));
  return took < STEP_MS / 3 ? Math.min(MOST, rows * 2) : rows;
}

/**
 * Repeats `step` until it takes nothing. Safe on many nodes at once: of two, one goes on.
 * @param step deletes at most so many rows and says how many went
 * @returns how many went in all
 */
async function inSteps(
  database: Database,
  step: (tx: Knex.Transaction, rows: number) => Promise<number>,
): Promise<number> {
  let total = 0;
  for (let rows = FIRST; ; ) {
    let begun = 0;
    const gone = await database.transaction((tx) => {
      begun = performance.now();
      return step(tx, rows);
    });
    total += gone;
    // Not at the first step that is not full: another node may have taken the rest of it.
    if (gone === 0) return total;
    rows = nextRows(rows, performance.now() - begun);
  }
}

/**
 * Deletes in steps what `where` finds; an index has to lead there. `key` is the table's primary key.
 * @param also goes with every step that took something
 */
export function purge(
  database: Database,
  table: string,
  key: readonly string[],
  where: (rows: Knex.QueryBuilder) => Knex.QueryBuilder,
  also?: (tx: Knex.Transaction) => Promise<void>,
): Promise<number> {
  return inSteps(database, async (tx, rows) => {
    const found = where(tx(table).select([...key])).limit(rows);
    const gone = await tx(table)
      .whereIn([...key], found)
      .delete();
    if (gone > 0) await also?.(tx);
    return gone;
  });
}

export type Row = Readonly<Record<string, unknown>>;

export interface Removal {
  readonly table: string;
  readonly key: readonly string[];
  /** The rows that are due; asked once without a lock, and again for the rows of a step in its transaction. */
  readonly due: (db: Knex) => Knex.QueryBuilder;
  /** What has to be locked first. */
  readonly before?: (tx: Knex.Transaction) => Promise<void>;
  /** What goes with the rows. */
  readonly also?: (tx: Knex.Transaction, rows: readonly Row[]) => Promise<void>;
}

const FOUND = 2000;

function isAmong(query: Knex.QueryBuilder, { table, key }: Removal, rows: readonly Row[]): Knex.QueryBuilder {
  const names = key.map((name) => `${table}.${name}`);
  const values = rows.map((row) => key.map((name) => row[name] as Knex.Value));
  return query.whereIn(names, values);
}

async function removeStep(tx: Knex.Transaction, removal: Removal, found: readonly Row[]): Promise<number> {
  await removal.before?.(tx);
  // Locked: once a visit has begun to write one of them it is no longer due.
  const rows = (await isAmong(removal.due(tx), removal, found)
    .select([...removal.key])
    .forUpdate()) as Row[];
  if (rows.length === 0) return 0;
  await removal.also?.(tx, rows);
  await isAmong(tx(removal.table), removal, rows).delete();
  return rows.length;
}

/**
 * Works through what was found in steps, each a transaction of its own.
 * @param least rows of a step, however slow the one before it was
 * @param goesOn false stops between two steps
 * @returns the sum of what the steps return
 */
export async function inPieces<T>(
  database: Database,
  found: readonly T[],
  step: (tx: Knex.Transaction, some: readonly T[]) => Promise<number>,
  { least = LEAST, goesOn = () => true }: { readonly least?: number; readonly goesOn?: () => boolean } = {},
): Promise<number> {
  let total = 0;
  for (let at = 0, rows = FIRST; at < found.length && goesOn(); ) {
    const some = found.slice(at, at + rows);
    at += some.length;
    let begun = 0;
    total += await database.transaction((tx) => {
      begun = performance.now();
      return step(tx, some);
    });
    rows = Math.max(least, Math.min(nextRows(rows, performance.now() - begun), FOUND));
  }
  return total;
}

/** Removes all of `found` that is still due. */
const removeFound = (database: Database, removal: Removal, found: readonly Row[]): Promise<number> =>
  inPieces(database, found, (tx, some) => removeStep(tx, removal, some));

/** Removes what is due, found by reads that hold nobody up. */
export async function remove(database: Database, removal: Removal): Promise<number> {
  let total = 0;
  for (;;) {
    const found = (await removal
      .due(database.read)
      .select([...removal.key])
      .limit(FOUND)) as Row[];
    const gone = await removeFound(database, removal, found);
    total += gone;
    // What was found and stays has become held or contested in between.
    if (found.length < FOUND || gone === 0) return total;
  }
}

/** Rows that one read looks at. */
const WINDOW = 20_000;

/**
 * The same for a condition that no index leads to: the table is walked in the order of its key, which `order` ends, a short
 * read at a time.
 */
export async function removeWalking(
  database: Database,
  removal: Removal,
  walk: { readonly within: Readonly<Record<string, string>>; readonly order: string },
): Promise<number> {
  const { within, order } = walk;
  let total = 0;
  for (let after = ''; ; ) {
    const window = database.read(removal.table).where(within).where(order, '>', after);
    const upto = await cellOf<string>(window.orderBy(order).offset(WINDOW - 1), order);
    const due = removal
      .due(database.read)
      .where(`${removal.table}.${order}`, '>', after)
      .select([...removal.key]);
    if (upto !== undefined) due.where(`${removal.table}.${order}`, '<=', upto);
    total += await removeFound(database, removal, (await due) as Row[]);
    if (upto === undefined) return total;
    after = upto;
  }
}
