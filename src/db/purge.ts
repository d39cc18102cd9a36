import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Database } from './engine.ts';
import { cellOf, hasRowLocks, whereAmong } from './sql.ts';

/**
 * Deletes expired rows in small steps, each in its own transaction, so that other writers get their turn in
 * between. A step that took longer than a group commit makes the next one smaller.
 */

/**
 * The pause between two steps. Another process that waits for SQLite's writer asks every millisecond;
 * PostgreSQL's processors and disk are shared.
 */
const GAP_MS = { sqlite: 4, postgres: 1 };
const MAX_ROWS = 4000;
/** The database counts as busy until nobody has written for this long. */
const QUIET_MS = 1000;

interface Limits {
  /** The longest that a step may occupy SQLite's writer, or a tenant's log on PostgreSQL. */
  readonly stepMs: number;
  /** Smaller steps would spend their time on commits. */
  readonly minRows: number;
  /** The part of the time that steps may take, 0 to 1. */
  readonly part: number;
}

/** A step is about as long as a group commit. */
const URGENT: Limits = { stepMs: 10, minRows: 250, part: 1 };
/**
 * Nobody waits for the deletion, and nobody else writes. A newcomer waits for one step at most, and the next
 * step yields.
 */
const PATIENT: Limits = { stepMs: 20, minRows: 250, part: 1 };
/**
 * Nobody waits, and others write: a step is shorter than a commit. Together, steps still delete several times
 * the rows that visits add in that time. PostgreSQL has no single writer, and is always quiet.
 */
const SHARED: Limits = { stepMs: 4, minRows: 50, part: 0.15 };

function limitsOf(database: Database, isPatient: boolean): Limits {
  if (!isPatient) return URGENT;
  return database.quietMs() < QUIET_MS ? SHARED : PATIENT;
}

/** Gets the number of rows that a step has deleted. */
export type OnStep = (deleted: number) => void;

/** A deletion in steps starts again after a crash, or commits its completion last. */
const REPEATABLE = { repeatable: true } as const;

interface StepResult {
  readonly deleted: number;
  /** Milliseconds that the step occupied the writer. */
  readonly took: number;
  readonly limits: Limits;
}

function nextRows(rows: number, { took, limits }: StepResult): number {
  const factor = Math.min(2, (limits.stepMs * 0.7) / took);
  return Math.max(limits.minRows, Math.min(MAX_ROWS, Math.floor(rows * factor)));
}

/** Runs one step in its transaction, then pauses. */
async function runOne(
  database: Database,
  step: (tx: Knex.Transaction) => Promise<number>,
  isPatient: boolean,
): Promise<StepResult> {
  let startedAt = 0;
  const deleted = await database.transaction((tx) => {
    startedAt = performance.now();
    return step(tx);
  }, REPEATABLE);
  const took = performance.now() - startedAt;
  const limits = limitsOf(database, isPatient);
  await sleep(GAP_MS[database.kind]);
  if (limits.part < 1) {
    await database.copyLog();
    await sleep(took / limits.part - took);
  }
  return { deleted, took, limits };
}

/**
 * Repeats `step` until it deletes nothing. Safe on many nodes at once: of two, one continues.
 * @param step deletes at most so many rows and returns how many it deleted
 * @returns the total of deleted rows
 */
async function inSteps(
  database: Database,
  step: (tx: Knex.Transaction, rows: number) => Promise<number>,
  onStep?: OnStep,
): Promise<number> {
  let total = 0;
  for (let rows = limitsOf(database, true).minRows; ; ) {
    const result = await runOne(database, (tx) => step(tx, rows), true);
    total += result.deleted;
    onStep?.(result.deleted);
    // A step that is not full is no end: another node may have deleted the rest of it.
    if (result.deleted === 0) return total;
    rows = nextRows(rows, result);
  }
}

/**
 * Deletes the rows that `condition` selects, in steps; it needs an index. `key` is the primary key.
 * @param also runs in every step that deleted something
 */
export async function purge(
  database: Database,
  table: string,
  key: readonly string[],
  condition: (rows: Knex.QueryBuilder) => Knex.QueryBuilder,
  also?: (tx: Knex.Transaction) => Promise<void>,
  onStep?: OnStep,
): Promise<number> {
  const step = async (tx: Knex.Transaction, rows: number): Promise<number> => {
    const found = condition(tx(table).select([...key])).limit(rows);
    // Rows that another node deletes are left to it: two nodes that wait for each other's rows would
    // deadlock.
    if (hasRowLocks(tx)) found.forUpdate().skipLocked();
    const deleted = await tx(table)
      .whereIn([...key], found)
      .delete();
    if (deleted > 0) await also?.(tx);
    return deleted;
  };
  // Most tables have nothing due, and a read takes no writer's turn.
  const [due] = (await condition(database.read(table).select([...key])).limit(1)) as unknown[];
  return due === undefined ? 0 : inSteps(database, step, onStep);
}

/** The speed of a deletion, and when it stops. */
interface Pace {
  /** The fewest rows of a step, however slow the previous one was. */
  readonly minRows?: number;
  /** False stops between two steps. */
  readonly shouldContinue?: (() => boolean) | undefined;
  readonly onStep?: OnStep | undefined;
  /** Nobody waits for this deletion: it leaves SQLite's writer to others. */
  readonly isPatient?: boolean;
}

export type Key = string | number;

export interface Removal extends Pick<Pace, 'shouldContinue' | 'onStep'> {
  readonly table: string;
  /** The last column of the primary key; `within` has the other columns. */
  readonly key: string;
  readonly within: Readonly<Record<string, string>>;
  /** Selects the due rows. It runs once without a lock, and again in the transaction of each step. */
  readonly due: (db: Knex) => Knex.QueryBuilder;
  /** Takes the locks that the deletion needs. */
  readonly before?: (tx: Knex.Transaction, found: readonly Key[]) => Promise<void>;
  /** Deletes what depends on the rows. */
  readonly also?: (tx: Knex.Transaction, keys: readonly Key[]) => Promise<void>;
}

const MAX_FOUND = 2000;

/**
 * Deletes those of these rows that are still due, each found by its key.
 * @returns the keys of the deleted rows
 */
async function deleteDue(tx: Knex.Transaction, removal: Removal, found: readonly Key[]): Promise<Key[]> {
  const { table, key, within, due } = removal;
  const name = `${table}.${key}`;
  if (hasRowLocks(tx)) {
    const deletedRows = (await whereAmong(due(tx), tx, name, found).delete(key)) as Readonly<
      Record<string, Key>
    >[];
    return deletedRows.map((row) => row[key] as Key);
  }
  // The left side of a CROSS JOIN is SQLite's outer loop (sqlite.org/optoverview.html section 7): otherwise
  // it reads all due rows.
  const keys = tx.raw('json_each(?) AS found CROSS JOIN ??', [JSON.stringify(found), table]);
  const stillDue = due(tx).from(keys).whereRaw('?? = found.value', [name]).select(name);
  const dueKeys = ((await stillDue) as Readonly<Record<string, Key>>[]).map((row) => row[key] as Key);
  if (dueKeys.length > 0) await whereAmong(tx(table).where(within), tx, key, dueKeys).delete();
  return dueKeys;
}

async function removeStep(tx: Knex.Transaction, removal: Removal, found: readonly Key[]): Promise<number> {
  await removal.before?.(tx, found);
  const deletedKeys = await deleteDue(tx, removal, found);
  if (deletedKeys.length > 0) await removal.also?.(tx, deletedKeys);
  return deletedKeys.length;
}

/**
 * Works through the found rows in steps, each in its own transaction.
 * @returns the sum of the step results
 */
export async function inPieces<T>(
  database: Database,
  found: readonly T[],
  step: (tx: Knex.Transaction, piece: readonly T[]) => Promise<number>,
  { minRows = 0, shouldContinue = () => true, onStep, isPatient = false }: Pace = {},
): Promise<number> {
  let total = 0;
  for (let at = 0, rows = limitsOf(database, isPatient).minRows; at < found.length && shouldContinue(); ) {
    const piece = found.slice(at, at + rows);
    at += piece.length;
    const result = await runOne(database, (tx) => step(tx, piece), isPatient);
    total += result.deleted;
    onStep?.(result.deleted);
    rows = Math.max(minRows, Math.min(nextRows(rows, result), MAX_FOUND));
  }
  return total;
}

/** Removes those of `found` that are still due. */
const removeFound = (database: Database, removal: Removal, found: readonly Key[]): Promise<number> =>
  inPieces(database, found, (tx, piece) => removeStep(tx, removal, piece), {
    isPatient: true,
    shouldContinue: removal.shouldContinue,
    onStep: removal.onStep,
  });

/**
 * Removes due rows, found by reads that block nobody.
 * @param since the time column, whose index has the due rows in order: each read begins where the previous
 * one ended, and so skips deleted rows, which PostgreSQL's index keeps while any transaction may see them
 */
export async function remove(database: Database, removal: Removal, since: string): Promise<number> {
  const { key, table, due, shouldContinue = () => true } = removal;
  let total = 0;
  for (let from: Key | undefined; ; ) {
    const query = due(database.read).orderBy(`${table}.${since}`).limit(MAX_FOUND);
    if (from !== undefined) query.where(`${table}.${since}`, '>=', from);
    const rows = (await query.select(key, since)) as Readonly<Record<string, Key>>[];
    const removed = await removeFound(
      database,
      removal,
      rows.map((row) => row[key] as Key),
    );
    total += removed;
    const last = rows.at(-1)?.[since];
    // A found row that stays was put under legal hold or contested in between.
    if (rows.length < MAX_FOUND || (removed === 0 && last === from) || !shouldContinue()) return total;
    from = last;
  }
}

/** Rows that one read looks at. */
const WINDOW = 20_000;

/**
 * Removes due rows when no index leads to them: walks the table in the order of its key, a short read at a
 * time.
 */
export async function removeWalking(database: Database, removal: Removal): Promise<number> {
  const { table, key, within, shouldContinue = () => true } = removal;
  let total = 0;
  for (let after = ''; ; ) {
    const window = database.read(table).where(within).where(key, '>', after);
    const upto = await cellOf<string>(window.orderBy(key).offset(WINDOW - 1), key);
    const due = removal.due(database.read).where(`${table}.${key}`, '>', after);
    if (upto !== undefined) due.where(`${table}.${key}`, '<=', upto);
    total += await removeFound(database, removal, (await due.pluck(key)) as Key[]);
    if (upto === undefined || !shouldContinue()) return total;
    after = upto;
  }
}
