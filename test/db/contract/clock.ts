import { describe, expect, it } from 'vitest';
import { commitTime, followClock, keepNoncesFrom } from '../../../src/db/clock-rule-store.ts';
import type { Database } from '../../../src/db/engine.ts';
import { purgeNonces } from '../../../src/ingest/decisions-store.ts';
import { isFresh } from '../../../src/ingest/open.ts';
import { DAY, HOUR, isoTime, MINUTE } from '../../../src/lib/clock.ts';
import { Unavailable } from '../../../src/lib/errors.ts';
import { addDecision, addRetiringKey, countOf, createHouse, privateKeyOf } from '../../ops/contract/house.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { fc } from '../../support/property.ts';
import { createRecorder } from '../../support/recorder.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from './database.ts';

const YEAR = 365 * DAY;
const SKEW = 5 * MINUTE;
const KID = 'shop';

/** Nobody can recreate these rows, which fall due in the next two days. */
async function fill(database: Database): Promise<void> {
  await addTenant(database, KID);
  await addDecision(database, KID, 'old', NOW - 88 * DAY);
  await addRetiringKey(database, KID, NOW + 2 * DAY);
  const day = Math.floor(NOW / DAY) - 5;
  await database.transaction(async (tx) => {
    await tx('network_days').insert({ day, kid: KID, durable: 'd', networks: 1 });
    await tx('nonces').insert({ kid: KID, nonce: 'n', dated_at: NOW + DAY });
  });
}

const TABLES = ['decisions', 'network_days', 'nonces'];

async function whatIsLeft(database: Database): Promise<readonly string[]> {
  const nonEmpty: string[] = [];
  for (const table of TABLES) if ((await countOf(database, table, KID)) > 0) nonEmpty.push(table);
  return (await privateKeyOf(database, KID)) === null ? nonEmpty : [...nonEmpty, 'private key'];
}

const ALL = [...TABLES, 'private key'];

/** Runs a test on a filled database of its own. */
const withinOn =
  (make: MakeDatabase) =>
  async (work: (db: TestDatabase) => Promise<void>): Promise<void> => {
    const db = await make();
    await fill(db.database);
    await work(db);
    await db.close();
  };

export function clockContract(make: MakeDatabase): void {
  describe('a clock that is wrong', () => {
    const within = withinOn(make);

    // Guards against: on PostgreSQL the jobs of a minute and of an hour commit the time together, and one ran a day behind.
    it('years ahead: gpd deletes nothing irreversibly in the first hour, and then one day per hour', () =>
      within(async ({ database }) => {
        const before = createHouse(database);
        await before.round();
        await before.stop();
        const house = createHouse(database, NOW + 3 * YEAR);
        for (const after of [MINUTE, 30 * MINUTE]) {
          expect(await house.round(after)).toEqual([]);
          expect(await whatIsLeft(database)).toEqual(ALL);
        }
        expect(house.events).toEqual(['clock-ahead']);
        // Whatever it jumps by, and however often a server starts.
        house.setClock(YEAR);
        await house.round(40 * MINUTE);
        await house.stop();
        const next = createHouse(database, house.at());
        await next.round(10 * MINUTE);
        expect(await whatIsLeft(database)).toEqual(ALL);
        for (let hour = 0; hour < 2; hour += 1) await next.round(HOUR);
        expect(await whatIsLeft(database)).not.toEqual(ALL);
        await next.round(HOUR);
        await next.round(HOUR);
        expect(await whatIsLeft(database)).toEqual([]);
        await next.stop();
      }));

    it('behind the newest committed time by more than the skew: 503 with the reason, until it has caught up', () =>
      within(async ({ database }) => {
        await commitTime(database, NOW);
        let now = NOW - SKEW;
        const rule = await followClock(database, () => now, SKEW);
        expect(rule.notReadyReasons()).toEqual([]);
        rule.requireClock();
        now -= 1;
        const reason = `the clock is behind the newest committed time, ${isoTime(NOW)}`;
        expect(rule.notReadyReasons()).toEqual([`clock: ${reason}`]);
        expect(rule.requireClock).toThrow(new Unavailable(reason));
        expect(await rule.commit()).toEqual({ at: now, event: 'clock-behind', offMs: SKEW + 1 });
        now = NOW + 1;
        expect(await rule.commit()).toEqual({ at: now, event: 'clock-right', offMs: 0 });
      }));

    it('another node learns of a newer time with its next round', () =>
      within(async (db) => {
        const behind = await followClock(db.database, () => NOW - HOUR, SKEW);
        behind.requireClock();
        await commitTime(await db.connect(), NOW);
        await behind.commit();
        expect(behind.requireClock).toThrow(Unavailable);
      }));
  });
}

/** The rule over rows; that both databases delete them is in the contracts of their tables. */
export function clockRules(make: MakeDatabase): void {
  describe('what a wrong clock may do', () => {
    const within = withinOn(make);

    it('off for a week: after seven hours all is as ever', () =>
      within(async ({ database }) => {
        const before = createHouse(database);
        await before.round();
        await before.stop();
        const house = createHouse(database, NOW + 7 * DAY);
        for (let hour = 0; hour < 8; hour += 1) expect(await house.round(HOUR)).toEqual([]);
        expect(house.events).toEqual(['clock-ahead', 'clock-right']);
        expect(await whatIsLeft(database)).toEqual([]);
        await house.stop();
      }));

    it('the time cannot be committed: nothing runs', () =>
      within(async ({ database }) => {
        let away = false;
        const house = createHouse(database, NOW + YEAR, {
          clockRule: {
            commit: () =>
              away
                ? Promise.reject(new Error('away'))
                : commitTime(database, NOW).then(() => ({ at: NOW, event: 'clock-right', offMs: 0 })),
          },
        });
        away = true;
        expect(await house.round()).toEqual(['commit-time null']);
        expect(await house.round()).toEqual([]);
        expect(await whatIsLeft(database)).toEqual(ALL);
        away = false;
        expect(await house.round()).toEqual([]);
        await house.stop();
      }));

    // Guards against: a skew that is raised, or a clock that goes back, makes bundles fresh whose nonces are forgotten.
    it('no bundle is taken twice, by any clock and any skew', () =>
      within(async ({ database }) => {
        const seconds = fc.integer({ min: -4000, max: 4000 });
        const step = fc.record({ at: seconds, skew: fc.integer({ min: 1, max: 3600 }), dated: seconds });
        let run = 0;
        let all = 0;
        await fc.assert(
          fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 8 }), async (steps) => {
            run += 1;
            await database.transaction((tx) => tx('meta').where('name', 'like', 'nonces-%').delete());
            const acceptedNonces: string[] = [];
            for (const [i, { at, skew, dated }] of [...steps, ...steps].entries()) {
              const [now, skewMs, clientTs] = [NOW + at * 1000, skew * 1000, NOW + dated * 1000];
              await purgeNonces(database, keepNoncesFrom(now, skewMs));
              if (!isFresh(clientTs, now, skewMs / 1000)) continue;
              const nonce = `run${run}-${dated}`;
              const entry = createEntry({
                kid: KID,
                id: `${run}-${i}`,
                nonce,
                datedAt: clientTs,
                durable: null,
              });
              if ((await createRecorder(database).record(entry)) === 'recorded') acceptedNonces.push(nonce);
            }
            expect(new Set(acceptedNonces).size).toBe(acceptedNonces.length);
            all += acceptedNonces.length;
          }),
          { numRuns: 20 },
        );
        expect(all).toBeGreaterThan(10);
      }));

    it('a nonce is kept for at least twice the skew after its bundle was taken', () => {
      const ms = fc.integer({ min: 1, max: 86_400_000 });
      fc.assert(
        fc.property(ms, fc.double({ min: -1, max: 1, noNaN: true }), (skew, lead) => {
          const clientTs = NOW + Math.trunc(lead * skew);
          expect(clientTs).toBeGreaterThanOrEqual(keepNoncesFrom(NOW + 2 * skew, skew));
        }),
      );
    });
  });
}
