import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Database, openDatabase } from '../../src/db/engine.ts';
import { inPieces } from '../../src/db/purge.ts';
import { runSql, sendTogether, type Transaction } from '../../src/db/sql.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { tempDir } from '../support/command.ts';
import { insertBatches } from '../support/database.ts';
import { holdTransaction } from './contract/database.ts';

let directory: string;
let location: string;
let database: Database;

beforeEach(async () => {
  directory = tempDir('db');
  location = join(directory, 'gpd.db');
  database = await openDatabase({ location, create: true });
  await database.transaction((tx) => tx.schema.createTable('t', (table) => table.integer('n').primary()));
});

afterEach(() => database.close());

const numbers = (): Promise<number[]> => database.read('t').orderBy('n').pluck('n');
const insert = (n: number): Promise<unknown> => database.transaction((tx) => tx('t').insert({ n }));

/** Another process that takes the write lock, says so, and gives it back after a while. */
async function lockElsewhere(): Promise<{ release: () => Promise<unknown> }> {
  const script = `
    const { Database } = require('sqlite3');
    const db = new Database(${JSON.stringify(location)}, () => db.exec('BEGIN IMMEDIATE', (error) => {
      console.log(error ? error.message : 'locked');
      process.stdin.resume().on('end', () => db.exec('COMMIT', () => db.close()));
    }));`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const done = once(child, 'exit');
  const [output] = (await once(child.stdout, 'data')) as [Buffer];
  expect(output.toString().trim()).toBe('locked');
  const release = (): Promise<unknown> => {
    child.stdin.end();
    return done;
  };
  return { release };
}

describe('an SQLite database', () => {
  it('is not created when it is missing, unless the caller asks for it', async () => {
    const missing = join(directory, 'elsewhere.db');
    await expect(openDatabase({ location: missing })).rejects.toThrow('gpd init');
    expect(existsSync(missing)).toBe(false);
    const opened = await openDatabase({ location });
    expect(await opened.read('t')).toEqual([]);
    await opened.close();
  });

  it('has its pragmas in force on the writer and on every reader', async () => {
    const expected = {
      journal_mode: 'wal',
      synchronous: 2,
      busy_timeout: 5000,
      foreign_keys: 1,
      secure_delete: 1,
      temp_store: 2,
      trusted_schema: 0,
    };
    const pragmas = async (connection: Knex): Promise<object> => {
      const entries = Object.keys(expected).map(async (name) => {
        const [row] = (await connection.raw(`PRAGMA ${name}`)) as Record<string, unknown>[];
        return [name, Object.values(row ?? {})[0]];
      });
      return Object.fromEntries(await Promise.all(entries)) as object;
    };
    // A transaction asks for the writer again by our own count, not by SQLite's.
    const onWriter = { ...expected, busy_timeout: 0 };
    expect(await database.transaction((tx) => pragmas(tx))).toEqual(onWriter);
    // Four at once: every connection that the read pool can make.
    const readers = await Promise.all(Array.from({ length: 4 }, () => pragmas(database.read)));
    expect(readers).toEqual(Array(4).fill(expected));
  });

  it('reads beside a running write, and sees nothing of it before the commit', async () => {
    const writing = await holdTransaction(database, (tx) => tx('t').insert({ n: 1 }));
    const reads = await Promise.all(Array.from({ length: 20 }, () => numbers()));
    expect(reads).toEqual(Array(20).fill([]));
    await writing.commit();
    expect(await numbers()).toEqual([1]);
  });
});

describe('beside a process that writes', () => {
  it('waits for a lock that is held for a moment, and then writes', async () => {
    const { release } = await lockElsewhere();
    let isWritten = false;
    const writing = insert(1).then(() => {
      isWritten = true;
    });
    await sleep(100);
    expect(isWritten).toBe(false);
    await release();
    await writing;
    expect(await numbers()).toEqual([1]);
  });

  it('does not fail when it reads first and writes then, as a deferred BEGIN would', async () => {
    const other = await openDatabase({ location });
    const both = [database, other].map((node) =>
      node.transaction(async (tx) => {
        const [row] = (await tx('t').max({ n: 'n' })) as { n: number | null }[];
        await sleep(20);
        await tx('t').insert({ n: (row?.n ?? 0) + 1 });
      }),
    );
    await Promise.all(both);
    expect(await numbers()).toEqual([1, 2]);
    await other.close();
  });

  it('overwrites what is deleted: no byte of it is left in the file', async () => {
    const mark = 'a-mark-that-is-nowhere-else';
    await database.transaction((tx) => tx.raw('CREATE TABLE words (word text)'));
    await database.transaction((tx) => tx('words').insert({ word: mark.repeat(20) }));
    await database.transaction((tx) => tx('words').delete());
    await database.read.raw('PRAGMA wal_checkpoint(TRUNCATE)');
    for (const name of await readdir(directory))
      expect((await readFile(join(directory, name))).includes(mark), name).toBe(false);
  });
});

/** A raw statement stays prepared. */
const put = (tx: Transaction, n: number): Promise<unknown> => runSql(tx, 'INSERT INTO t (n) VALUES (?)', [n]);

describe('the disk', () => {
  const FULL = 2;
  const NORMAL = 1;

  it('is not waited for by a transaction that can be repeated, and by each one after it', async () => {
    const level = async (tx: Transaction) => {
      const [row] = await runSql<{ synchronous: number }>(tx, 'PRAGMA synchronous', []);
      return row?.synchronous;
    };
    const repeatable = { repeatable: true };
    const failing = async (tx: Transaction) => {
      await level(tx);
      throw new Error('fails');
    };
    expect(await database.transaction(level)).toBe(FULL);
    expect(await database.transaction(level, repeatable)).toBe(NORMAL);
    expect(await database.transaction(level, repeatable)).toBe(NORMAL);
    expect(await database.transaction(level)).toBe(FULL);
    await expect(database.transaction(failing, repeatable)).rejects.toThrow('fails');
    expect(await database.transaction(level)).toBe(FULL);
    await expect(database.transaction(failing, repeatable)).rejects.toThrow('fails');
    expect(await database.transaction(level)).toBe(FULL);
  });
});

describe('a long deletion', () => {
  const ROW_COUNT = 600;
  afterEach(() => void vi.restoreAllMocks());

  /** A clock that nothing but the test moves. */
  function stopClock() {
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => now);
    return (ms: number): void => {
      now += ms;
    };
  }

  /** @returns how many rows each step had, and how often the log was copied */
  async function run(isPatient: boolean, quietMs: number) {
    const sizes: number[] = [];
    let copied = 0;
    const beside: Database = {
      ...database,
      quietMs: () => quietMs,
      copyLog: () => {
        copied += 1;
        return database.copyLog();
      },
    };
    const rows = Array.from({ length: ROW_COUNT }, (_, n) => n + 1);
    const step = (tx: Knex.Transaction, batch: readonly number[]): Promise<number> => {
      sizes.push(batch.length);
      return tx('t').whereIn('n', batch).delete();
    };
    await database.transaction((tx) =>
      insertBatches(
        tx,
        't',
        rows.map((n) => ({ n })),
      ),
    );
    expect(await inPieces(beside, rows, step, { isPatient })).toBe(ROW_COUNT);
    return { sizes, copied };
  }

  it('gives way to those who write', async () => {
    const { sizes, copied } = await run(true, 999);
    expect(sizes[0]).toBe(50);
    expect(copied).toBe(sizes.length);
  });

  it.each([
    ['nobody has written for a second', true, 1000],
    ['somebody waits for it', false, 0],
  ])('gives way to nobody where %s', async (_, isPatient, quietMs) => {
    const { sizes, copied } = await run(isPatient, quietMs);
    expect(copied).toBe(0);
    expect(Math.min(...sizes.slice(0, -1))).toBeGreaterThanOrEqual(250);
  });

  it('knows how long nobody has written, but for deletions that can be repeated', async () => {
    const advance = stopClock();
    const nothing = (): Promise<void> => Promise.resolve();
    await database.transaction(nothing);
    advance(50);
    await database.transaction(nothing, { repeatable: true });
    await database.snapshot(nothing);
    expect(database.quietMs()).toBe(50);
  });

  it('knows that another process wrote, once it deletes again', async () => {
    const advance = stopClock();
    const nothing = (): Promise<void> => Promise.resolve();
    const deletes = (): Promise<void> => database.transaction(nothing, { repeatable: true });
    await database.transaction(nothing);
    await deletes();
    advance(2000);
    await database.transaction((tx) => tx('t').insert({ n: 1 }), { repeatable: true });
    await database.copyLog();
    await deletes();
    expect(database.quietMs()).toBe(2000);
    const other = await openDatabase({ location: database.file ?? '' });
    onTestFinished(() => other.close());
    await other.transaction((tx) => tx('t').insert({ n: 2 }));
    await deletes();
    expect(database.quietMs()).toBe(0);
    advance(50);
    await deletes();
    expect(database.quietMs()).toBe(50);
  });

  it('a long log is copied whole, and begins again', async () => {
    await database.transaction((tx) => tx.raw('CREATE TABLE wide (text text)'));
    const log = async (): Promise<{ log: number; checkpointed: number } | undefined> =>
      (
        (await database.read.raw('PRAGMA wal_checkpoint(NOOP)')) as { log: number; checkpointed: number }[]
      )[0];
    const grow = (rows: number): Promise<unknown> =>
      database.transaction((tx) =>
        tx.raw('INSERT INTO wide SELECT printf(?, 1) FROM json_each(?)', [
          '%.4000d',
          JSON.stringify(Array.from({ length: rows }, () => 0)),
        ]),
      );
    await database.copyLog();
    await grow(500);
    await database.copyLog();
    expect((await log())?.checkpointed).toBe(0);
    await grow(900);
    await database.copyLog();
    const whole = await log();
    expect(whole?.checkpointed).toBe(whole?.log);
    await grow(1);
    expect((await log())?.log).toBeLessThan(100);
  });
});

it('statements sent together have all ended when it throws, though one throws before it is sent', async () => {
  let hasEnded = false;
  const slow = async (): Promise<void> => {
    await new Promise((resolve) => void setImmediate(resolve));
    hasEnded = true;
  };
  const broken = (): never => {
    throw new RangeError('before its statement');
  };
  await expect(sendTogether(slow, broken)).rejects.toThrow(RangeError);
  expect(hasEnded).toBe(true);
});

it('the first error in time is thrown: PostgreSQL refuses what comes after it, in whatever order it was asked', async () => {
  const aborted = async (): Promise<never> => {
    await new Promise((resolve) => void setImmediate(resolve));
    throw new TypeError('the transaction is aborted');
  };
  const deadlock = async (): Promise<never> => {
    throw new RangeError('deadlock');
  };
  await expect(sendTogether(aborted, deadlock)).rejects.toThrow(RangeError);
});

describe('a transaction', () => {
  const run = <T>(work: (tx: Transaction) => Promise<T>): Promise<T> => database.transaction(work);

  it('commits what the work did, and answers with its result', async () => {
    const work = async (tx: Transaction): Promise<string> => {
      await put(tx, 1);
      return 'done';
    };
    expect(await run(work)).toBe('done');
    expect(await numbers()).toEqual([1]);
  });

  it('undoes everything when the work throws, tells the error as it is, and works on', async () => {
    const error = new TypeError('of the work');
    const failed = run(async (tx) => {
      await put(tx, 1);
      throw error;
    });
    await expect(failed).rejects.toBe(error);
    await run((tx) => put(tx, 2));
    await expect(run((tx) => put(tx, 2))).rejects.toThrow(/UNIQUE/);
    await run((tx) => put(tx, 3));
    expect(await numbers()).toEqual([2, 3]);
  });

  it('undoes everything when one of several statements sent together fails, the slower ones too', async () => {
    const slow =
      'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 50000) INSERT INTO t SELECT n FROM c';
    const failed = run(async (tx) => {
      await put(tx, 99_999);
      await sendTogether(
        () => put(tx, 99_999),
        () => runSql(tx, slow, []),
        () => put(tx, 77_777),
      );
    });
    await expect(failed).rejects.toThrow(/UNIQUE/);
    expect(await numbers()).toEqual([]);
  });

  it('takes back what a COMMIT refused, and goes on', async () => {
    await database.transaction((tx) =>
      tx.raw('CREATE TABLE child (n integer REFERENCES t (n) DEFERRABLE INITIALLY DEFERRED)'),
    );
    const orphan = run(async (tx) => {
      await put(tx, 1);
      await runSql(tx, 'INSERT INTO child (n) VALUES (?)', [99]);
    });
    await expect(orphan).rejects.toThrow('FOREIGN KEY');
    expect(await numbers()).toEqual([]);
    await run((tx) => put(tx, 2));
    expect(await numbers()).toEqual([2]);
  });

  it('comes after the one before, in the order in which they came', async () => {
    const order: string[] = [];
    await Promise.all(
      [0, 1, 2, 3, 4].map((n) => {
        const work = async (tx: Transaction): Promise<void> => {
          order.push(`begin ${n}`);
          await put(tx, n);
          await sleep(5);
          order.push(`end ${n}`);
        };
        return run(work);
      }),
    );
    const startOrder = order.filter((_, i) => i % 2 === 0).map((entry) => Number(entry.split(' ')[1]));
    expect(order).toEqual(startOrder.flatMap((n) => [`begin ${n}`, `end ${n}`]));
    expect(startOrder.filter((n) => n % 2 === 0)).toEqual([0, 2, 4]);
    expect(await numbers()).toEqual([0, 1, 2, 3, 4]);
  });

  it('has the write lock from its BEGIN: nobody else writes after it began', async () => {
    const other = await openDatabase({ location });
    let end = (): void => {};
    let holder: Promise<void> = Promise.resolve();
    await new Promise<void>((onBegan) => {
      holder = run(async (tx) => {
        await runSql(tx, 'SELECT n FROM t', []);
        onBegan();
        await new Promise<void>((resolve) => {
          end = resolve;
        });
      });
    });
    const startOrder: number[] = [];
    const writing = [0, 1].map((n) =>
      other.transaction(async (tx) => {
        startOrder.push(n);
        await put(tx, n);
      }),
    );
    await sleep(100);
    expect(startOrder).toEqual([]);
    end();
    await Promise.all([holder, ...writing]);
    expect(await numbers()).toEqual([0, 1]);
    await other.close();
  });

  it('gets in between two steps of a long deletion of another process', async () => {
    const other = await openDatabase({ location });
    const [steps, writes] = [200, 10];
    let deleted = 0;
    const deletion = inPieces(other, Array.from({ length: 250 * steps }), async (tx, batch) => {
      await runSql(tx, 'SELECT n FROM t', []);
      await sleep(7);
      deleted += batch.length;
      return batch.length;
    });
    for (let n = 0; n < writes; n += 1) await run((tx) => put(tx, n));
    // SQLite's own wait would take more than half of the steps for ten writes.
    expect(deleted / 250).toBeLessThan(steps / 4);
    expect(await deletion).toBe(250 * steps);
    await other.close();
  });

  it('is unavailable when the lock is held for longer than the busy timeout, and works again after', async () => {
    const { release } = await lockElsewhere();
    // Its statements are past knex: outside a transaction they would commit by themselves once the lock is gone.
    let worked = false;
    const first = run((tx) => {
      worked = true;
      return put(tx, 1);
    });
    const results = await Promise.allSettled([first, insert(2)]);
    for (const result of results) {
      expect(result.status).toBe('rejected');
      expect((result as PromiseRejectedResult).reason).toBeInstanceOf(Unavailable);
    }
    expect((results[0] as PromiseRejectedResult).reason.retryAfterSeconds).toBeGreaterThan(0);
    await release();
    await run((tx) => put(tx, 3));
    expect(await numbers()).toEqual([3]);
    expect(worked).toBe(false);
  });

  it('takes no statement once it has ended, nor while it commits', async () => {
    let endedTransaction: Transaction | undefined;
    await run((tx) => {
      endedTransaction = tx;
      return put(tx, 1);
    });
    await expect(put(endedTransaction!, 2)).rejects.toThrow('has ended');
    let inNext: Promise<unknown> | undefined;
    await run(async () => {
      inNext = put(endedTransaction!, 3);
      await expect(inNext).rejects.toThrow('has ended');
    });
    expect(await numbers()).toEqual([1]);
  });
});
