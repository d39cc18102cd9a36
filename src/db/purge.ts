import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Database } from './db.ts';
import { cellOf, hasRowLocks, runStep, whereAmong } from './sql.ts';

/**
 * Expired rows are deleted in small steps, each its own transaction: others who wait for the writer get it in
 * between. A step that took longer than a group commit makes the next one smaller.
 */

/**
 * Between two steps others have the database for so long. Another process that waits for SQLite's writer asks every millisecond;
 * PostgreSQL's processors and its disk are shared.
 */
const GAP_MS = { sqlite: 4, postgres: 1 };
const MAX_ROWS = 4000;
/** Others write as long as one did within this time. */
const QUIET_MS = 1000;

interface Limits {
  /** What a step may hold SQLite's writer for, and a tenant's log on PostgreSQL. */
  readonly stepMs: number;
  /** Smaller steps spend their time on commits. */
  readonly minRows: number;
  /** Of the time. */
  readonly part: number;
}

/** Nobody waits for the end of `shared` and `patient`. */
const LIMITS = {
  sqlite: {
    /** About as long as a group commit. */
    urgent: { stepMs: 10, minRows: 250, part: 1 },
    /** Nobody writes. Who comes now waits for one step, and the next one gives way. */
    patient: { stepMs: 20, minRows: 250, part: 1 },
    /** Others write: a step is shorter than a commit, and all of them take several times what the visits of the same seconds leave. */
    shared: { stepMs: 4, minRows: 50, part: 0.15 },
  },
  postgres: { stepMs: 15, minRows: 250, part: 1 },
} satisfies Record<Database['kind'], Limits | Record<string, Limits>>;

function limitsOf(database: Database, isPatient: boolean): Limits {
  if (database.kind === 'postgres') return LIMITS.postgres;
  const { urgent, patient, shared } = LIMITS.sqlite;
  if (!isPatient) return urgent;
  return database.quietMs() < QUIET_MS ? shared : patient;
}

/** A deletion in steps begins again after a crash, or commits last that it is done. */
const REPEATABLE = { repeatable: true } as const;

interface Done {
  readonly gone: number;
  /** Milliseconds that the step had the writer for. */
  readonly took: number;
  readonly limits: Limits;
}

function nextRows(rows: number, { took, limits }: Done): number {
  const factor = Math.min(2, (limits.stepMs * 0.7) / took);
  return Math.max(limits.minRows, Math.min(MAX_ROWS, Math.floor(rows * factor)));
}

/** One step in its transaction, and the pause after it. */
async function runOne(
  database: Database,
  step: (tx: Knex.Transaction) => Promise<number>,
  isPatient: boolean,
): Promise<Done> {
  let begun = 0;
  const gone = await database.transaction((tx) => {
    begun = performance.now();
    return step(tx);
  }, REPEATABLE);
  const took = performance.now() - begun;
  const limits = limitsOf(database, isPatient);
  await sleep(GAP_MS[database.kind]);
  if (limits.part < 1) {
    await database.copyLog();
    await sleep(took / limits.part - took);
  }
  return { gone, took, limits };
}

/**
 * Repeats `step` until it deletes nothing. Safe on many nodes at once: of two, one continues.
 * @param step deletes at most so many rows and says how many went
 * @returns how many went in all
 */
async function inSteps(
  database: Database,
  step: (tx: Knex.Transaction, rows: number) => Promise<number>,
): Promise<number> {
  let total = 0;
  for (let rows = limitsOf(database, true).minRows; ; ) {
    const done = await runOne(database, (tx) => step(tx, rows), true);
    total += done.gone;
    // Not at the first step that is not full: another node may have taken the rest of it.
    if (done.gone === 0) return total;
    rows = nextRows(rows, done);
  }
}

/**
 * Deletes in steps what `where` finds; an index has to lead there. `key` is the table's primary key.
 * @param also runs in every step that deleted something
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
    // Rows that another node deletes are left to it: two that wait for each other's rows are a deadlock.
    if (hasRowLocks(tx)) found.forUpdate().skipLocked();
    const gone = await tx(table)
      .whereIn([...key], found)
      .delete();
    if (gone > 0) await also?.(tx);
    return gone;
  });
}

/** How fast a deletion may be, and until when. */
interface Pace {
  /** Least rows of a step, however slow the one before it was. */
  readonly minRows?: number;
  /** False stops between two steps. */
  readonly goesOn?: (() => boolean) | undefined;
  /** Nobody waits for it: it leaves SQLite's writer to others. */
  readonly isPatient?: boolean;
}

export type Key = string | number;

export interface Removal extends Pick<Pace, 'goesOn'> {
  readonly table: string;
  /** Ends the primary key; `within` is what else is in it. */
  readonly key: string;
  readonly within: Readonly<Record<string, string>>;
  /** The rows that are due; asked once without a lock, and again for the rows of a step in its transaction. */
  readonly due: (db: Knex) => Knex.QueryBuilder;
  /** What has to be locked first. */
  readonly before?: (tx: Knex.Transaction, found: readonly Key[]) => Promise<void>;
  /** What is deleted together with the rows. */
  readonly also?: (tx: Knex.Transaction, keys: readonly Key[]) => Promise<void>;
}

const FOUND = 2000;

/** Deletes those of these rows that are due still, each found by its key. @returns the keys of what went */
async function deleteDue(tx: Knex.Transaction, removal: Removal, found: readonly Key[]): Promise<Key[]> {
  const { table, key, within, due } = removal;
  const name = `${table}.${key}`;
  if (hasRowLocks(tx)) {
    const gone = (await whereAmong(due(tx), tx, name, found).delete(key)) as Readonly<Record<string, Key>>[];
    return gone.map((row) => row[key] as Key);
  }
  // The left side of a CROSS JOIN is SQLite's outer loop (sqlite.org/optoverview.html section 7): else it reads all that is due.
  const keys = tx.raw('json_each(?) AS found CROSS JOIN ??', [JSON.stringify(found), table]);
  const stillDue = due(tx).from(keys).whereRaw('?? = found.value', [name]).select(name);
  const going = (await runStep<Readonly<Record<string, Key>>>(tx, stillDue)).map((row) => row[key] as Key);
  if (going.length > 0) await runStep(tx, whereAmong(tx(table).where(within), tx, key, going).delete());
  return going;
}

async function removeStep(tx: Knex.Transaction, removal: Removal, found: readonly Key[]): Promise<number> {
  await removal.before?.(tx, found);
  const gone = await deleteDue(tx, removal, found);
  if (gone.length > 0) await removal.also?.(tx, gone);
  return gone.length;
}

/**
 * Works through what was found in steps, each its own transaction.
 * @returns the sum of what the steps return
 */
export async function inPieces<T>(
  database: Database,
  found: readonly T[],
  step: (tx: Knex.Transaction, some: readonly T[]) => Promise<number>,
  { minRows = 0, goesOn = () => true, isPatient = false }: Pace = {},
): Promise<number> {
  let total = 0;
  for (let at = 0, rows = limitsOf(database, isPatient).minRows; at < found.length && goesOn(); ) {
    const some = found.slice(at, at + rows);
    at += some.length;
    const done = await runOne(database, (tx) => step(tx, some), isPatient);
    total += done.gone;
    rows = Math.max(minRows, Math.min(nextRows(rows, done), FOUND));
  }
  return total;
}

/** Removes all of `found` that is still due. */
const removeFound = (database: Database, removal: Removal, found: readonly Key[]): Promise<number> =>
  inPieces(database, found, (tx, some) => removeStep(tx, removal, some), {
    isPatient: true,
    goesOn: removal.goesOn,
  });

/**
 * Removes what is due, found by reads that hold nobody up.
 * @param since the column of its time, in whose order an index has the due rows: a read begins where the one before it ended, and
 *   passes no deleted rows, which PostgreSQL's index keeps while anybody may still see them
 */
export async function remove(database: Database, removal: Removal, since: string): Promise<number> {
  const { key, table, due, goesOn = () => true } = removal;
  let total = 0;
  for (let from: Key | undefined; ; ) {
    const query = due(database.read).orderBy(`${table}.${since}`).limit(FOUND);
    if (from !== undefined) query.where(`${table}.${since}`, '>=', from);
    const rows = (await query.select(key, since)) as Readonly<Record<string, Key>>[];
    const gone = await removeFound(
      database,
      removal,
      rows.map((row) => row[key] as Key),
    );
    total += gone;
    const last = rows.at(-1)?.[since];
    // What was found and stays has become held or contested in between.
    if (rows.length < FOUND || (gone === 0 && last === from) || !goesOn()) return total;
    from = last;
  }
}

/** Rows that one read looks at. */
const WINDOW = 20_000;

/**
 * The same for a condition that no index leads to: the table is walked in the order of its key, a short read at a time.
 */
export async function removeWalking(database: Database, removal: Removal): Promise<number> {
  const { table, key, within, goesOn = () => true } = removal;
  let total = 0;
  for (let after = ''; ; ) {
    const window = database.read(table).where(within).where(key, '>', after);
    const upto = await cellOf<string>(window.orderBy(key).offset(WINDOW - 1), key);
    const due = removal.due(database.read).where(`${table}.${key}`, '>', after);
    if (upto !== undefined) due.where(`${table}.${key}`, '<=', upto);
    total += await removeFound(database, removal, (await due.pluck(key)) as Key[]);
    if (upto === undefined || !goesOn()) return total;
    after = upto;
  }
}
