import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { DAY } from '../../../src/lib/clock.ts';
import { createDaySalts } from '../../../src/ops/day-salt-store.ts';
import { createDayHash } from '../../../src/ops/limits-service.ts';
import type { MakeDatabase } from '../../db/contract/database.ts';
import { twoNodes } from '../../support/started.ts';

export function daySaltContract(make: MakeDatabase): void {
  describe('the salt of a day', () => {
    const { db, other } = twoNodes(make);

    const secret = randomBytes(32);
    const saltsIn = async (database: Database) =>
      (await database.read('meta').where('name', 'like', 'day-salt %').select('name', 'value')) as {
        name: string;
        value: string;
      }[];

    it('is random, one for all nodes, and gone from the database with its day', async () => {
      const now = 100 * DAY;
      const nodes = [db.database, other].map((database) => createDaySalts(database, () => now, randomBytes));
      await Promise.all(nodes.map(({ renew }) => renew()));
      const hashes = nodes.map(({ saltOf }) =>
        createDayHash({ serverSecret: secret, saltOf, clock: () => now }, 'network')('203.0.113.0/24'),
      );
      expect(hashes[0]).toBe(hashes[1]);
      expect((await saltsIn(other)).map(({ name }) => name).sort()).toEqual(['day-salt 100', 'day-salt 101']);
      const [today] = nodes;
      const forgotten = today?.saltOf(100) ?? '';
      const tomorrow = createDaySalts(other, () => now + DAY, randomBytes);
      await tomorrow.renew();
      const remaining = await saltsIn(db.database);
      expect(remaining.map(({ name }) => name).sort()).toEqual(['day-salt 101', 'day-salt 102']);
      expect(remaining.map(({ value }) => value)).not.toContain(forgotten);
      // The salt of the next day was created before midnight.
      expect(today?.saltOf(101)).toBe(tomorrow.saltOf(101));
      // A deleted salt cannot be derived from the master key.
      const again = createDaySalts(other, () => now, randomBytes);
      await again.renew();
      expect(again.saltOf(100)).not.toBe(forgotten);
    });

    it('that a process used before the database had one is stored', async () => {
      const salts = createDaySalts(db.database, () => 300 * DAY, randomBytes);
      const firstSalt = salts.saltOf(300);
      await salts.renew();
      expect(salts.saltOf(300)).toBe(firstSalt);
      const another = createDaySalts(db.database, () => 300 * DAY, randomBytes);
      await another.renew();
      expect(another.saltOf(300)).toBe(firstSalt);
    });

    it('that a process used while it asked the database is stored', async () => {
      const salts = createDaySalts(db.database, () => 400 * DAY, randomBytes);
      const renewal = salts.renew();
      const firstSalt = salts.saltOf(400);
      await renewal;
      expect(salts.saltOf(400)).toBe(firstSalt);
    });

    it('is one of this process alone while the database cannot give one', () => {
      const salts = createDaySalts(db.database, () => 0, randomBytes);
      expect(salts.saltOf(7)).toBe(salts.saltOf(7));
      expect(salts.saltOf(7)).not.toBe(salts.saltOf(8));
    });
  });
}
