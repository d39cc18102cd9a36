import { describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/db.ts';
import { raiseForgotten } from '../../../src/db/time-marks-store.ts';
import { makeRecorder } from '../../../src/ingest/recorder-store.ts';
import { DAY, HOUR, MINUTE } from '../../../src/lib/clock.ts';
import { addDecision, addRetiringKey, countOf, makeHouse, privateKeyOf } from '../../ops/contract/house.ts';
import { makeEntry, NOW } from '../../support/make.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from './database.ts';

const YEAR = 365 * DAY;
const KID = 'shop';

/** What nobody can make again, all of it due a year from now. */
async function fill(database: Database): Promise<void> {
  await addTenant(database, KID);
  await addDecision(database, KID, 'one', NOW - 5 * HOUR);
  await addRetiringKey(database, KID, NOW + DAY);
  const day = Math.floor(NOW / DAY);
  await database.transaction(async (tx) => {
    await tx('network_days').insert({ day, kid: KID, durable: 'd', networks: 1 });
    await tx('nonces').insert({ kid: KID, nonce: 'n', expires_at: NOW + DAY });
  });
}

const TABLES = ['decisions', 'network_days', 'nonces'];

async function whatIsLeft(database: Database): Promise<readonly string[]> {
  const left: string[] = [];
  for (const table of TABLES) if ((await countOf(database, table, KID)) > 0) left.push(table);
  return (await privateKeyOf(database, KID)) === null ? left : [...left, 'private key'];
}

const ALL = [...TABLES, 'private key'];

export function clockContract(make: MakeDatabase): void {
  describe('housekeeping by a clock that is wrong', () => {
    const within = async (work: (db: TestDatabase) => Promise<void>): Promise<void> => {
      const db = await make();
      await fill(db.database);
      await work(db);
      await db.close();
    };

    it('a year ahead at the start: nothing goes that could not be taken back, until it has stood for six hours', () =>
      within(async ({ database }) => {
        const before = makeHouse(database);
        await before.round();
        await before.stop();
        const house = makeHouse(database, NOW + YEAR);
        for (const after of [MINUTE, 3 * HOUR, 2 * HOUR]) {
          expect(await house.round(after)).toEqual([]);
          expect(await whatIsLeft(database)).toEqual(ALL);
        }
        expect(house.events).toEqual(['clock-ahead']);
        await house.round(HOUR);
        await house.round(HOUR);
        expect(await whatIsLeft(database)).toEqual([]);
        expect(house.events).toEqual(['clock-ahead', 'clock-believed']);
        await house.stop();
      }));

    it('a database of an older release: its newest decision is held against the clock', () =>
      within(async ({ database }) => {
        const house = makeHouse(database, NOW + YEAR);
        for (const after of [MINUTE, 5 * HOUR]) {
          await house.round(after);
          expect(await whatIsLeft(database)).toEqual(ALL);
        }
        house.setClock(-YEAR);
        await house.round();
        // It was off for some hours as far as anybody knows.
        await house.round(HOUR);
        expect(house.events).toEqual(['clock-ahead', 'clock-believed']);
        expect(await countOf(database, 'decisions', KID)).toBe(1);
        await house.stop();
      }));

    it('off for a week: what comes is recorded at once, and after six hours all is as ever', () =>
      within(async ({ database }) => {
        const before = makeHouse(database);
        await before.round();
        await before.stop();
        const back = NOW + 7 * DAY;
        const house = makeHouse(database, back);
        await house.round();
        const recorder = makeRecorder(database, () => performance.now());
        const arrived = makeEntry({ kid: KID, id: 'back', decidedAt: back, expiresAt: back + 900_000 });
        const { claim, ...entry } = arrived;
        const record = () =>
          recorder.record({ claim: { ...claim, earliestExpiry: back }, device: null, decide: () => entry });
        expect(await record()).toMatchObject({ verdict: { decidedAt: back } });
        expect(await record()).toBe('replay');
        for (let i = 0; i < 7; i += 1) expect(await house.round(HOUR)).toEqual([]);
        expect(await privateKeyOf(database, KID)).toBeNull();
        expect(await database.read('decisions').where({ kid: KID }).pluck('decided_at')).toContain(back);
        // The hour of the old decision and the hour of the new one.
        expect(await countOf(database, 'verdict_seals', KID)).toBe(2);
        await house.stop();
      }));

    it('a jump between the start and the first round is not believed', () =>
      within(async ({ database }) => {
        await database.transaction((tx) =>
          tx('seal_keys')
            .where({ kid: KID, generation: 2 })
            .update({ retires_at: NOW + 20 * MINUTE }),
        );
        const house = makeHouse(database);
        // Too little for a start to doubt it.
        house.setClock(30 * MINUTE);
        await house.round();
        expect(await whatIsLeft(database)).toEqual(ALL);
        await house.stop();
      }));

    it('says that nonces were forgotten ahead of time, until the time has caught up', () =>
      within(async ({ database }) => {
        await database.transaction((tx) => raiseForgotten(tx, NOW + 2 * HOUR));
        const house = makeHouse(database);
        await house.round();
        await house.round(HOUR);
        expect(house.events).toEqual(['clock-forgotten-ahead']);
        await house.round(2 * HOUR);
        await house.stop();
      }));

    it('what the last server knew of the time cannot be read: nothing runs', () =>
      within(async ({ database }) => {
        let away = true;
        const read = new Proxy(database.read, {
          apply: (real, self, args) => {
            if (away) throw new Error('away');
            return Reflect.apply(real, self, args) as unknown;
          },
        });
        const house = makeHouse({ ...database, read }, NOW + YEAR);
        expect(await house.round()).toEqual(['look-at-clock null']);
        expect(await house.round()).toEqual([]);
        expect(await whatIsLeft(database)).toEqual(ALL);
        away = false;
        expect(await house.round()).toEqual([]);
        expect(await whatIsLeft(database)).toEqual(ALL);
        expect(house.events).toEqual(['clock-ahead']);
        await house.stop();
      }));
  });
}
