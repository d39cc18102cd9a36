import type { Knex } from 'knex';
import { describe, expect, it } from 'vitest';
import { addKeyTraffic } from '../../../src/tenants/key-use-store.ts';
import { holdTransaction, type MakeDatabase, othersWait } from '../../db/contract/database.ts';
import { createEntry, NOW, type TestEntry } from '../../support/make.ts';
import { createRecorder, ensureTenant } from '../../support/recorder.ts';
import { twoNodes } from '../../support/started.ts';

/**
 * Two nodes would deadlock if they locked the same rows in
 * opposite orders while a third node has locked one of them.
 */
export function crossingContract(make: MakeDatabase): void {
  describe('Recorder, with batches that cross on two nodes', () => {
    const { db, other } = twoNodes(make);

    const SIZE = 20;
    const numbers = Array.from({ length: SIZE }, (_, i) => i);

    /** Runs `work` while another node has locked a row, which is then unlocked unchanged. */
    async function whileHeld<T>(
      hold: (tx: Knex.Transaction) => PromiseLike<unknown>,
      work: () => Promise<T>,
    ) {
      const holder = await holdTransaction(await db.connect(), hold);
      const result = work();
      await othersWait(other);
      await holder.giveBack();
      return result;
    }

    function recordAll(entries: readonly TestEntry[], entriesOfOther: readonly TestEntry[]) {
      const [here, there] = [createRecorder(db.database), createRecorder(other)];
      return Promise.all([
        ...entries.map((entry) => here.record(entry)),
        ...entriesOfOther.map((entry) => there.record(entry)),
      ]);
    }

    it('counts each device twice', async () => {
      const entries = (node: string) =>
        numbers.map((i) => createEntry({ kid: 'devices', id: `${node}${i}`, durable: `d${i}` }));
      await recordAll(entries('first'), []);
      const middle = { kid: 'devices', durable: `d${SIZE / 2}` };
      const answers = await whileHeld(
        (tx) => tx('sightings').where(middle).update({ seen: 99 }),
        () => recordAll(entries('a'), entries('b').reverse()),
      );
      expect(new Set(answers)).toEqual(new Set(['recorded']));
      const seen = await other.read('sightings').where({ kid: 'devices' }).pluck('seen');
      expect(seen).toEqual(numbers.map(() => 3));
    });

    it('counts the bundles of each seal key', async () => {
      const use = { since: NOW, of: 'key', generation: 1, count: 2, lastAt: NOW } as const;
      const uses = numbers.map((i) => ({ ...use, kid: `used-${i}` }));
      for (const { kid } of uses) await ensureTenant(db.database, kid);
      await addKeyTraffic(db.database, uses);
      await whileHeld(
        (tx) =>
          tx('key_traffic')
            .where({ kid: `used-${SIZE / 2}` })
            .update({ bundles: 99 }),
        () => Promise.all([addKeyTraffic(db.database, uses), addKeyTraffic(other, [...uses].reverse())]),
      );
      const counted = await other.read('key_traffic').where('kid', 'like', 'used-%').pluck('bundles');
      expect(counted.map(Number)).toEqual(numbers.map(() => 6));
    });

    it('counts the populations of many tenants', async () => {
      const signals = [{ name: 'screen', value: 'v' }];
      const summary = { signals, joint: 'j', expiresAt: NOW + 1 };
      const kidOf = (i: number): string => `population-${i}`;
      // A separate day ensures that both nodes share no other row of these entries.
      const entries = (node: string, day: number) =>
        numbers.map((i) => {
          const id = `${node}${i}`;
          return createEntry({ kid: kidOf(i), id, durable: id, day, summary });
        });
      await recordAll(entries('first', 1), []);
      const middle = { kid: kidOf(SIZE / 2), signal: '*counted' };
      const answers = await whileHeld(
        (tx) => tx('population').where(middle).update({ devices: 99 }),
        () => recordAll(entries('a', 2), entries('b', 3).reverse()),
      );
      expect(new Set(answers)).toEqual(new Set(['recorded']));
      for (const i of numbers) {
        const kid = kidOf(i);
        const counted = await other.read('population').where({ kid }).pluck('devices');
        expect(counted.map(Number)).toEqual([3, 3, 3, 3]);
        expect(await other.read('signal_summaries').where({ kid })).toHaveLength(3);
      }
    });
  });
}
