import { describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { createTotals, lookUpDevices, purgeNetworks } from '../../../src/ingest/devices-store.ts';
import type { MakeDatabase } from '../../db/contract/database.ts';
import { createEntry, DAY, NOW } from '../../support/make.ts';
import { createLookup, createRecorder } from '../../support/recorder.ts';
import { twoNodes } from '../../support/started.ts';

const UNKNOWN = { seen: false, neverAutomation: false, marked: false };

const clock = (): number => NOW;

/** @returns the device as it is known on a network where it has never been */
async function ask(database: Database, kid: string, durable: string, network = 'elsewhere', day = DAY) {
  return createLookup(database)({ kid, durable, network, day });
}

async function addOverride(database: Database, kid: string, durable: string): Promise<void> {
  await database.transaction((tx) => tx('overrides').insert({ kid, durable, created_at: NOW }));
}

export function deviceContract(make: MakeDatabase): void {
  describe('what is known of a device', () => {
    const { db, other } = twoNodes(make);

    it('knows a device by its tenant and its durable id, and no other', async () => {
      await createRecorder(db.database).record(createEntry({ kid: 'k1', id: 'a', durable: 'seen' }));
      expect(await ask(other, 'k1', 'seen')).toMatchObject({
        seen: true,
        neverAutomation: false,
      });
      for (const [kid, durable] of [
        ['k1', 'Seen'],
        ['k2', 'seen'],
        ['k', '1|seen'],
      ] as const)
        expect(await ask(other, kid, durable), `${kid} ${durable}`).toMatchObject(UNKNOWN);
    });

    it('tells an override, with and without a sighting', async () => {
      await createRecorder(db.database).record(createEntry({ kid: 'k4', id: 'a', durable: 'both' }));
      await addOverride(db.database, 'k4', 'both');
      await addOverride(db.database, 'k4', 'override-only');
      expect(await ask(other, 'k4', 'both')).toMatchObject({ seen: true, neverAutomation: true });
      expect(await ask(other, 'k4', 'override-only')).toMatchObject({ seen: false, neverAutomation: true });
      expect(await ask(other, 'k5', 'both')).toMatchObject(UNKNOWN);
    });

    it('answers a thousand questions of one turn in their order', async () => {
      const recorder = createRecorder(db.database);
      const networks = (i: number): number => (i % 10 === 0 ? 1 + ((i / 10) % 7) : 0);
      const entries = Array.from({ length: 1000 }, (_, i) =>
        Array.from({ length: networks(i) }, (_, n) =>
          createEntry({ kid: 'k6', id: `d${i}-${n}`, durable: `d${i}`, network: `n${n}` }),
        ),
      ).flat();
      await Promise.all(entries.map((entry) => recorder.record(entry)));
      const query = { kid: 'k6', network: 'new', day: DAY };
      const queries = Array.from({ length: 1000 }, (_, i) => ({ ...query, durable: `d${i}` }));
      const answers = await lookUpDevices(other.read, createTotals(clock), queries);
      expect(answers.map(({ seen: isSeen, spread }) => [isSeen, spread.pairsOfWeek])).toEqual(
        answers.map((_, i) => [i % 10 === 0, networks(i) + 1]),
      );
    });

    it('takes any text as an id', async () => {
      for (const id of ["x' OR '1'='1", '?', '%', '🐢', ''])
        expect(await ask(other, id, id, id), id).toMatchObject(UNKNOWN);
    });

    it('counts the networks of a day and a week, this sighting included', async () => {
      const recorder = createRecorder(db.database);
      const sight = (id: string, network: string, day: number, durable = 'spread') =>
        recorder.record(createEntry({ kid: 'k7', id, durable, network, day }));
      await sight('1', 'n1', DAY);
      await sight('2', 'n2', DAY);
      await sight('3', 'n1', DAY);
      await sight('4', 'n1', DAY - 1);
      await sight('5', 'n1', DAY - 6);
      await sight('6', 'n1', DAY - 7);
      await sight('7', 'n1', DAY, 'somebody else');
      const here = await ask(other, 'k7', 'spread', 'n2');
      expect(here).toMatchObject({
        marked: true,
        spread: { networksToday: 2, pairsOfWeek: 4, tenantPairsOfWeek: 5 },
      });
      const elsewhere = await ask(other, 'k7', 'spread', 'n9');
      expect(elsewhere).toMatchObject({ marked: false, spread: { networksToday: 3, pairsOfWeek: 5 } });
      const tomorrow = await ask(other, 'k7', 'spread', 'n1', DAY + 1);
      expect(tomorrow).toMatchObject({ marked: false, spread: { networksToday: 1, pairsOfWeek: 4 } });
    });

    it('counts each network once when many visits come in one turn', async () => {
      const sighted = Array.from({ length: 30 }, (_, i) => `n${i % 5}`).map((network, i) =>
        createRecorder(db.database).record(createEntry({ kid: 'k11', id: `c${i}`, durable: 'd', network })),
      );
      await Promise.all(sighted);
      const { spread } = await ask(other, 'k11', 'd', 'n1');
      expect(spread).toEqual({ networksToday: 5, pairsOfWeek: 5, tenantPairsOfWeek: 5 });
    });

    it('adds up the total of a tenant over days and shards', async () => {
      const days = [
        { kid: 'k12', day: DAY - 3, shard: 0, pairs: 4000 },
        { kid: 'k12', day: DAY - 2, shard: 5, pairs: 1000 },
      ];
      await db.database.transaction((tx) => tx('network_totals').insert(days));
      expect((await ask(other, 'k12', 'd')).spread.tenantPairsOfWeek).toBe(5000);
    });

    it('asks for the total of a tenant once in ten seconds', async () => {
      let now = NOW;
      const lookUp = createLookup(other, () => now);
      const total = async (): Promise<number> => {
        const query = { kid: 'k8', durable: 'd', network: 'n', day: DAY };
        return (await lookUp(query)).spread.tenantPairsOfWeek;
      };
      expect(await total()).toBe(0);
      await createRecorder(db.database).record(createEntry({ kid: 'k8', id: 'a' }));
      now += 9_999;
      expect(await total()).toBe(0);
      now += 1;
      expect(await total()).toBe(1);
    });

    it('forgets marks after their day and counts after their week', async () => {
      const recorder = createRecorder(db.database);
      for (const day of [DAY, DAY - 1, DAY - 7, DAY - 8])
        await recorder.record(createEntry({ kid: 'k9', id: `${day}`, durable: 'd', day }));
      await purgeNetworks(db.database, NOW);
      const days = (table: string): Promise<number[]> =>
        other.read(table).where({ kid: 'k9' }).orderBy('day').pluck('day');
      expect(await days('network_marks')).toEqual([DAY]);
      expect(await days('network_days')).toEqual([DAY - 7, DAY - 1, DAY]);
      expect(await days('network_totals')).toEqual([DAY - 7, DAY - 1, DAY]);
    });
  });
}
