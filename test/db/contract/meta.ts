import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readMeta, writeMeta } from '../../../src/db/meta-store.ts';
import type { MakeDatabase, TestDatabase } from './database.ts';

export function metaContract(make: MakeDatabase): void {
  describe('meta store', () => {
    let db: TestDatabase;
    beforeAll(async () => {
      db = await make();
    });
    afterAll(() => db.close());

    it('answers null for a name that was never written', async () => {
      expect(await readMeta(db.database, 'nothing')).toBeNull();
    });

    it('keeps the last value of each name, for every node', async () => {
      const other = await db.connect();
      await db.database.transaction((tx) => writeMeta(tx, 'secret', 'first'));
      await db.database.transaction((tx) => writeMeta(tx, 'other', 'ünï'));
      await db.database.transaction((tx) => writeMeta(tx, 'secret', 'second'));
      expect(await readMeta(other, 'secret')).toBe('second');
      expect(await readMeta(other, 'other')).toBe('ünï');
    });

    it('keeps the old value when the transaction fails', async () => {
      await db.database.transaction((tx) => writeMeta(tx, 'stays', 'old'));
      const undone = db.database.transaction(async (tx) => {
        await writeMeta(tx, 'stays', 'new');
        throw new Error('undone');
      });
      await expect(undone).rejects.toThrow('undone');
      expect(await readMeta(db.database, 'stays')).toBe('old');
    });
  });
}
