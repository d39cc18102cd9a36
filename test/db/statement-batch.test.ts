import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../src/db/db.ts';
import { type Bindings, type HotTransaction, insertInto, makeInserts, runHot } from '../../src/db/sql.ts';

/** Several inserts as one step of an SQLite connection: the first time one by one, from then on by a trigger. */

let directory: string;
let database: Database;
let tables = 0;
let write: ReturnType<typeof makeInserts>;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'gpd-test-together-'));
  database = await openDatabase({ location: join(directory, 'gpd.db'), create: true });
  await database.transaction(async (tx) => {
    await tx.raw('CREATE TABLE counts (name text PRIMARY KEY, n integer NOT NULL)');
    await tx.raw('CREATE TABLE seen (total integer NOT NULL, name text NOT NULL UNIQUE)');
  });
  tables += 1;
  write = makeInserts(`test_together_${tables}`, [
    insertInto('counts', ['name', 'n'], 'ON CONFLICT (name) DO UPDATE SET n = counts.n + excluded.n'),
    insertInto('seen', ['total', 'name']),
  ]);
});

afterEach(async () => {
  await database.close();
  await rm(directory, { recursive: true });
});

const add = (counts: readonly Bindings[], seen: readonly Bindings[]): Promise<void> =>
  database.hotTransaction((tx) => write(tx, [counts, seen]));
const counts = (): Promise<unknown> => database.read('counts').orderBy('name').select();
const seen = (): Promise<unknown[]> => database.read('seen').orderBy('name').pluck('name');

/** Which views of this test the connection of the writer has defined for itself. */
const views = (tx: HotTransaction): Promise<readonly unknown[]> =>
  runHot(tx, "SELECT name FROM sqlite_temp_schema WHERE type = 'view' AND name = ?", [
    `test_together_${tables}`,
  ]);

describe('inserts of one step', () => {
  it('write the same the first time, by the statements, and later, by the trigger', async () => {
    const defined: number[] = [];
    for (const round of [1, 2, 3]) {
      await database.hotTransaction(async (tx) => {
        defined.push((await views(tx)).length);
        await write(tx, [
          [
            ['a', 1],
            ['b', round],
            ['🐢 "quoted\u0000"', 1],
          ],
          [[round, `it's ${round}`]],
        ]);
      });
    }
    expect(defined).toEqual([0, 1, 1]);
    expect(await counts()).toEqual([
      { name: 'a', n: 3 },
      { name: 'b', n: 6 },
      { name: '🐢 "quoted\u0000"', n: 3 },
    ]);
    expect(await seen()).toEqual(["it's 1", "it's 2", "it's 3"]);
  });

  it('are the trigger alone from the second transaction on', async () => {
    for (let i = 0; i < 2; i += 1) await add([['a', 1]], []);
    await database.transaction((tx) => tx.raw(`DROP TRIGGER temp.test_together_${tables}_all`));
    await expect(add([['a', 1]], [])).rejects.toThrow('cannot modify');
    expect(await counts()).toEqual([{ name: 'a', n: 2 }]);
  });

  it('are the same statements one by one in a transaction of knex', async () => {
    for (let i = 0; i < 2; i += 1)
      await database.transaction((tx) => write(tx, [[['a', 1]], [[i, `s${i}`]]]));
    expect(await counts()).toEqual([{ name: 'a', n: 2 }]);
    expect(await seen()).toEqual(['s0', 's1']);
  });

  it('write nothing where there is nothing to write', async () => {
    for (let i = 0; i < 2; i += 1) await add([], []);
    expect(await counts()).toEqual([]);
    await add([], [[1, 'alone']]);
    expect(await seen()).toEqual(['alone']);
  });

  it('are taken back whole when one of them fails, and go on', async () => {
    await add([['a', 1]], [[1, 'x']]);
    const clash = ['y', 'x'].map((name) => [1, name]);
    for (let i = 0; i < 2; i += 1) {
      await expect(add([['a', 1]], clash)).rejects.toThrow('UNIQUE');
      expect(await counts()).toEqual([{ name: 'a', n: 1 }]);
      expect(await seen()).toEqual(['x']);
    }
    await add([['a', 1]], [[1, 'y']]);
    expect(await counts()).toEqual([{ name: 'a', n: 2 }]);
  });

  it('outlive a transaction that was rolled back, the very first as well', async () => {
    const refuse = (): Promise<void> =>
      database.hotTransaction(async (tx) => {
        await write(tx, [[['gone', 1]], [[1, 'gone']]]);
        throw new Error('refused');
      });
    for (let i = 0; i < 3; i += 1) await expect(refuse()).rejects.toThrow('refused');
    await add([['kept', 1]], [[1, 'kept']]);
    expect(await counts()).toEqual([{ name: 'kept', n: 1 }]);
    expect(await seen()).toEqual(['kept']);
  });

  it('leave nothing in the file but the rows', async () => {
    for (let i = 0; i < 2; i += 1) await add([['a', 1]], []);
    const kinds = await database.read('sqlite_schema').whereNot({ type: 'index' }).pluck('type');
    expect(new Set(kinds)).toEqual(new Set(['table']));
  });
});
