import { join } from 'node:path';
import type { Knex } from 'knex';
import { expect, it } from 'vitest';
import { openDatabase } from '../../src/db/db.ts';
import { makeDiskReserve, reserveSize } from '../../src/db/disk-reserve-files.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { tempDir } from '../support/command.ts';

it('what an erasure spends of a full disk is taken by nobody else, on either way to write', async () => {
  const dataDir = tempDir('reserve');
  const database = await openDatabase({ location: join(dataDir, 'gpd.db'), create: true });
  const reserve = makeDiskReserve(dataDir, 1);
  await reserve.refill();
  expect(reserveSize(dataDir)).toBe(1024 * 1024);
  const guarded = reserve.guard(database);
  const write = () => guarded.transaction(() => Promise.resolve('knex'));
  const hot = () => guarded.hotTransaction(() => Promise.resolve('hot'));
  expect(await Promise.all([write(), hot()])).toEqual(['knex', 'hot']);
  const level = (tx: Knex.Transaction) => tx.raw('PRAGMA synchronous') as Promise<unknown>;
  expect(await guarded.transaction(level, { repeatable: true })).toEqual([{ synchronous: 1 }]);
  let tries = 0;
  await reserve.during((attempt) =>
    attempt(async () => {
      tries += 1;
      if (tries === 1) throw Object.assign(new Error('full'), { code: 'SQLITE_FULL' });
      expect(reserveSize(dataDir)).toBe(0);
      await expect(write()).rejects.toThrow(Unavailable);
      await expect(hot()).rejects.toThrow(Unavailable);
    }),
  );
  expect(tries).toBe(2);
  await database.close();
});
