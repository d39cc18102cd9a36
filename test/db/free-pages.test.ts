import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { releaseFreePages } from '../../src/db/database-file.ts';
import { type Database, openDatabase } from '../../src/db/engine.ts';
import { rowsOf } from '../../src/db/sql.ts';
import { tempDir } from '../support/command.ts';

const FILLED = 40 * 1024 * 1024;

const autoVacuum = async ({ read }: Database): Promise<number | undefined> =>
  rowsOf<{ auto_vacuum: number }>(await read.raw('PRAGMA auto_vacuum'))[0]?.auto_vacuum;

async function fillAndEmpty(database: Database): Promise<void> {
  await database.transaction(async (tx) => {
    await tx.raw('CREATE TABLE filled (id integer primary key, text text)');
    const sql = `INSERT INTO filled (text) WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 40)
      SELECT hex(zeroblob(524288)) FROM i`;
    await tx.raw(sql);
  });
  await database.transaction((tx) => tx('filled').delete());
}

it('a new file returns its free pages, except for a few', async () => {
  const file = join(tempDir('free'), 'gpd.db');
  const database = await openDatabase({ location: file, create: true });
  expect(await autoVacuum(database)).toBe(2);
  await fillAndEmpty(database);
  await database.truncateLog();
  expect(statSync(file).size).toBeGreaterThan(FILLED);
  await releaseFreePages(database);
  await database.truncateLog();
  expect(statSync(file).size).toBeLessThan(FILLED / 2);
  await database.close();
});
