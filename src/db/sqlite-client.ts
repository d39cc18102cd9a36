import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Database, Statement } from 'sqlite3';
import { driverError, errorCode } from '../lib/errors.ts';
import { asUnavailable, NO_CONNECTION, namedError } from './availability.ts';
import type { Ask } from './builder.ts';
import type { Begins, Pool } from './transaction.ts';

/**
 * Connections to a SQLite file by the package sqlite3: one statement at a time, and transactions that begin
 * as writes.
 */

const require = createRequire(import.meta.url);

/** SQLite's native module was not compiled, or was compiled for another machine. */
export class SqliteUnloadable extends Error {
  constructor(reason: string, remedy: string) {
    super(`SQLite's native module cannot be loaded (${reason}): ${remedy}`);
    this.name = 'SqliteUnloadable';
  }
}

/** The package of this very file; what `npm install` was not allowed to run has to be run by hand. */
const PROGRAM = fileURLToPath(new URL('../..', import.meta.url));

function remedy(): string {
  const script = join(PROGRAM, 'bin', 'native.mjs');
  if (!existsSync(script)) return 'install gpd again, in a build for this machine';
  const path = /^[\w./@+-]+$/.test(script) ? script : `'${script.replaceAll("'", "'\\''")}'`;
  return `run \`node ${path}\`; it takes a C++ compiler, make and Python 3`;
}

/** @throws {SqliteUnloadable} */
export function requireSqlite(): typeof import('sqlite3') {
  try {
    return require('sqlite3') as typeof import('sqlite3');
  } catch (error) {
    const [first = ''] = (error as Error).message.split('\n');
    throw new SqliteUnloadable(first.replace(/\. Tried:$/, ''), remedy());
  }
}

/** Turns a callback of the driver into a promise. */
export const promised = <T>(ask: (done: (error: Error | null, value?: T) => void) => unknown): Promise<T> =>
  new Promise((resolve, reject) => void ask((error, value) => (error ? reject(error) : resolve(value as T))));

/** Runs statements that have no rows. */
export const execute = (database: Database, sql: string): Promise<void> =>
  promised((done) => database.exec(sql, (error) => done(error)));

const openFile = (filename: string): Promise<Database> => {
  const sqlite = requireSqlite();
  return promised((done) => {
    const database = new sqlite.Database(filename, (error) => done(error, database));
  });
};

/** The longest wait for the writer of another process. */
export const BUSY_MS = 5000;
const ASK_AGAIN_MS = 1;

/** Runs the statements of one connection. */
function createAsk(database: Database, filename: string) {
  /** Statements that stay prepared, by their text: 12 % of a check, 5 % of a visit or a grant. */
  const prepared = new Map<string, Statement>();

  const ask: Ask = (sql, bindings, wants) =>
    new Promise((resolve, reject) => {
      const fail = (error: Error): void => reject(asUnavailable(error, filename));
      function done(this: { readonly changes?: number }, error: Error | null, rows: unknown[] = []): void {
        if (error) fail(error);
        else resolve({ rows, count: this.changes ?? 0, raw: rows });
      }
      if (wants === 'count') database.run(sql, bindings, done);
      else if (wants === 'rows') database.all(sql, bindings, done);
      else if (prepared.has(sql)) prepared.get(sql)?.all(bindings, done);
      else {
        const statement: Statement = database.prepare(sql, (error) => {
          if (error) return fail(error);
          statement.all(bindings, done);
          // Two callers may have prepared one text at the same time.
          if (prepared.has(sql)) statement.finalize();
          else prepared.set(sql, statement);
        });
      }
    });

  /** SQLite refuses to close a connection that has statements. */
  async function close(): Promise<void> {
    for (const statement of prepared.values())
      await new Promise<void>((resolve) => void statement.finalize(() => resolve()));
    await promised<void>((done) => database.close((error) => done(error)));
  }

  return { ask, close };
}

export type SqliteConnection = Awaited<ReturnType<typeof connect>>;

/** @param pragmas run first */
export async function connect(filename: string, pragmas: readonly string[]) {
  const database = await openFile(filename).catch((error: unknown) => {
    throw namedError(error, filename);
  });
  const { ask, close } = createAsk(database, filename);
  /** False after a transaction that did not wait for the disk. */
  let awaitsDisk = true;

  /**
   * Each transaction sets its durability, so that none inherits less. SQLite applies the pragma when it
   * prepares the statement (sqlite.org/pragma.html): a statement that stays prepared would do nothing the
   * second time.
   */
  async function setDurability(isRepeatable: boolean): Promise<void> {
    if (awaitsDisk === !isRepeatable) return;
    await execute(database, `PRAGMA synchronous=${isRepeatable ? 'NORMAL' : 'FULL'}`);
    awaitsDisk = !isRepeatable;
  }

  /**
   * A deferred BEGIN that turns into a write next to a second process fails at once with SQLITE_BUSY,
   * whatever busy_timeout says (sqlite.org/lang_transaction.html). SQLite's own wait polls ever less often,
   * up to every 100 ms, and has no queue: a process that writes continuously would block the others. Polling
   * every millisecond finds the gap between two of its transactions.
   */
  async function beginImmediate(isRepeatable: boolean): Promise<void> {
    await setDurability(isRepeatable);
    const since = performance.now();
    for (;;) {
      try {
        await ask('BEGIN IMMEDIATE', [], 'few');
        return;
      } catch (error) {
        const isBusy = errorCode(driverError(error)) === 'SQLITE_BUSY';
        if (!isBusy || performance.now() - since > BUSY_MS) throw error;
      }
      await sleep(ASK_AGAIN_MS);
    }
  }

  try {
    await execute(database, pragmas.join(';'));
  } catch (error) {
    await close();
    throw namedError(error, filename);
  }
  return {
    ask,
    async begin(begins: Begins) {
      if (begins === 'snapshot') await ask('BEGIN', [], 'few');
      else await beginImmediate(begins === 'repeatable');
    },
    commit: async () => void (await ask('COMMIT', [], 'few')),
    /** SQLite may have ended the failed transaction itself (sqlite.org/lang_transaction.html section 3). */
    rollback: async () => void (await ask('ROLLBACK', [], 'few').catch(() => {})),
    close,
    driver: database,
  };
}

/** Callers that wait for a connection, in the order in which they came. */
function createQueue(file: string, waitMs: number) {
  const waiting: ((connection: SqliteConnection) => void)[] = [];
  return {
    wait: () =>
      new Promise<SqliteConnection>((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.splice(waiting.indexOf(serve), 1);
          reject(asUnavailable(new Error(NO_CONNECTION), file));
        }, waitMs);
        function serve(connection: SqliteConnection): void {
          clearTimeout(timer);
          resolve(connection);
        }
        waiting.push(serve);
      }),
    next: () => waiting.shift(),
  };
}

/** Connections to one file, which never go away by themselves. */
export function createPool(
  file: string,
  pragmas: readonly string[],
  { max, waitMs }: { readonly max: number; readonly waitMs: number },
): Pool<SqliteConnection> {
  const free: SqliteConnection[] = [];
  const queue = createQueue(file, waitMs);
  let opened = 0;
  let isClosed = false;
  let onLastBack: (() => void) | null = null;

  async function take(): Promise<SqliteConnection> {
    if (isClosed) throw asUnavailable(new Error(NO_CONNECTION), file);
    const connection = free.pop();
    if (connection !== undefined) return connection;
    if (opened >= max) return queue.wait();
    opened += 1;
    try {
      return await connect(file, pragmas);
    } catch (error) {
      opened -= 1;
      throw error;
    }
  }

  function giveBack(connection: SqliteConnection): void {
    const serve = queue.next();
    if (serve !== undefined) {
      serve(connection);
      return;
    }
    free.push(connection);
    if (free.length === opened) onLastBack?.();
  }

  return {
    async use(work) {
      const connection = await take();
      try {
        return await work(connection);
      } finally {
        giveBack(connection);
      }
    },
    async close() {
      isClosed = true;
      if (free.length < opened) {
        await new Promise<void>((resolve) => {
          onLastBack = resolve;
        });
      }
      opened = 0;
      for (const connection of free.splice(0)) await connection.close();
    },
  };
}
