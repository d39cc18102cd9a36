import { describe, expect, it } from 'vitest';
import { purgeNonces } from '../../../src/ingest/decision-store.ts';
import { earliestExpiry, isFresh, nonceExpiry } from '../../../src/ingest/freshness.ts';
import { MINUTE } from '../../../src/lib/clock.ts';
import { type SkewWatch, watchSkew } from '../../../src/ops/clock-watch.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { makeEntry, NOW } from '../../support/make.ts';
import { makeRecorder } from '../../support/recorder.ts';

const KID = 'shop';
const SHORT = MINUTE;
const LONG = 15 * MINUTE;

export function skewContract(make: MakeDatabase): void {
  describe('GPD_MAX_CLOCK_SKEW that was raised', () => {
    /** Servers of one database, one after the other or at one time, at the time that the test says. */
    async function within(
      work: (place: {
        now: number;
        start(skewMs: number): Promise<SkewWatch>;
        /** What a server with this skew makes of a bundle now. */
        send(skewMs: number, watch: SkewWatch, nonce: string, clientTs: number): Promise<string>;
      }) => Promise<void>,
    ): Promise<void> {
      const db: TestDatabase = await make();
      await addTenant(db.database, KID);
      let sent = 0;
      const place = {
        now: NOW,
        start: (skewMs: number) => watchSkew(db.database, skewMs, () => place.now),
        async send(skewMs: number, watch: SkewWatch, nonce: string, clientTs: number): Promise<string> {
          await purgeNonces(db.database, place.now);
          if (!isFresh(clientTs, place.now, skewMs)) return 'stale';
          sent += 1;
          const times = {
            expiresAt: nonceExpiry(place.now, skewMs),
            earliestExpiry: earliestExpiry(clientTs, watch.least()),
          };
          return makeRecorder(db.database).record(makeEntry({ kid: KID, id: `${sent}`, nonce, ...times }));
        },
      };
      await work(place);
      await db.close();
    }

    it('takes no bundle again that was taken under the smaller one, and new ones at once', () =>
      within(async (place) => {
        const before = await place.start(SHORT);
        expect(await place.send(SHORT, before, 'once', NOW)).toBe('recorded');
        place.now += 4 * MINUTE;
        const after = await place.start(LONG);
        expect(after.least()).toBe(SHORT);
        expect(await place.send(LONG, after, 'once', NOW)).toBe('stale');
        expect(await place.send(LONG, after, 'next', place.now)).toBe('recorded');
        expect(await place.send(LONG, after, 'next', place.now)).toBe('replay');
      }));

    it('has its whole effect when nothing of the smaller one can be fresh any more', () =>
      within(async (place) => {
        await place.start(SHORT);
        const after = await place.start(LONG);
        for (const minutes of [17, 1]) {
          place.now += minutes * MINUTE;
          await after.note();
          expect(after.least()).toBe(SHORT);
        }
        place.now += MINUTE;
        await after.note();
        expect(after.least()).toBe(LONG);
        expect(await place.send(LONG, after, 'late', place.now - 14 * MINUTE)).toBe('recorded');
      }));

    it('holds for as long as another node still goes by the smaller one', () =>
      within(async (place) => {
        const other = await place.start(SHORT);
        const own = await place.start(LONG);
        for (let i = 0; i < 4; i += 1) {
          place.now += 10 * MINUTE;
          await other.note();
          await own.note();
          expect(own.least()).toBe(SHORT);
        }
        expect(other.least()).toBe(SHORT);
      }));

    it('lowered and raised again: what is between counts', () =>
      within(async (place) => {
        await place.start(LONG);
        place.now += MINUTE;
        const between = await place.start(SHORT);
        const sentAt = place.now;
        expect(await place.send(SHORT, between, 'once', sentAt)).toBe('recorded');
        place.now += 4 * MINUTE;
        expect(await place.send(LONG, await place.start(LONG), 'once', sentAt)).toBe('stale');
      }));
  });
}
