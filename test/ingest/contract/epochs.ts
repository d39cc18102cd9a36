import { describe, expect, it } from 'vitest';
import { noteEpochLength, readEpochLength } from '../../../src/ingest/epoch-length-store.ts';
import { currentEpoch, epochEnd } from '../../../src/ingest/verdict/identity.ts';
import { DAY } from '../../../src/lib/clock.ts';
import { lockHead } from '../../../src/log/entries-store.ts';
import { readDevice } from '../../../src/rights/dsar/store.ts';
import { eraseRows } from '../../../src/rights/erase/rows-store.ts';
import { durableOfVisitor } from '../../../src/rights/link-store.ts';
import { retainTenant } from '../../../src/rights/retention/store.ts';
import { addTenant, type MakeDatabase } from '../../db/contract/database.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { twoNodes } from '../../support/started.ts';

/** `retention.days` of a new tenant. */
const RETENTION = 90;

export function epochContract(make: MakeDatabase): void {
  describe('a changed GPD_EPOCH_DAYS', () => {
    const { db, other } = twoNodes(make);

    /** A visit under this setting. @returns its visitorId */
    async function visit(kid: string, epochDays: number, at: number): Promise<string> {
      const epoch = currentEpoch(at, epochDays);
      const ends = { epoch, epochEndsAt: epochEnd(epoch, epochDays) };
      const id = `${kid}-${epochDays}-${at}`;
      const entry = createEntry({ kid, id, ...ends, durable: 'mine', decidedAt: at });
      expect(await createRecorder(db.database).record(entry)).toBe('recorded');
      return entry.identified?.visitorId ?? '';
    }
    async function retain(kid: string, now: number): Promise<void> {
      const planned = await retainTenant(other, kid, now, { dryRun: true });
      expect(await retainTenant(db.database, kid, now)).toEqual(planned);
    }
    const reached = (kid: string, visitorId: string) => durableOfVisitor(other, kid, visitorId);

    it.each([
      [30, 7],
      [30, 60],
      [7, 3650],
    ])(
      'from %d to %d: a visitorId leads to its device until its own epoch is out of retention',
      async (was, is) => {
        const kid = await addTenant(db.database, `epochs-${was}-${is}`);
        const old = await visit(kid, was, NOW);
        const end = epochEnd(currentEpoch(NOW, was), was);
        await retain(kid, NOW + 3_600_000);
        const young = await visit(kid, is, NOW + 2 * 3_600_000);
        expect(young).not.toBe(old);
        for (const id of [old, young]) expect(await reached(kid, id)).toBe('mine');
        const ids = (await readDevice(other, kid, 'mine'))?.visitorIds.map(({ visitorId }) => visitorId);
        expect(ids?.sort()).toEqual([old, young].sort());

        // The device comes again, so that it stays while its old visitorId goes.
        const last = await visit(kid, is, end + RETENTION * DAY - 1);
        await retain(kid, end + RETENTION * DAY - 1);
        expect(await reached(kid, old)).toBe('mine');
        await retain(kid, end + RETENTION * DAY + 3_600_000);
        expect(await reached(kid, old)).toBeNull();
        expect(await reached(kid, last)).toBe('mine');
      },
    );

    it('back again: the same visitorId leads to the device', async () => {
      const kid = await addTenant(db.database, 'there-and-back');
      const first = await visit(kid, 30, NOW);
      for (const days of [60, 7]) await visit(kid, days, NOW + days);
      expect(await visit(kid, 30, NOW + 100)).toBe(first);
      await retain(kid, NOW + DAY);
      expect(await reached(kid, first)).toBe('mine');
      const { counts } = await db.database.transaction(async (tx) => {
        await lockHead(tx, kid);
        const keep = { openContests: false, override: false };
        const durables = [(await reached(kid, first)) ?? ''];
        const target = { kid, durables, requests: [], linksOf: null, keep, requestRef: String };
        return eraseRows(tx, { ...target });
      });
      expect(counts['visitor-index']).toMatchObject({ erased: 3 });
      expect(await other.read('visitor_index').where({ kid })).toEqual([]);
    });

    it('is written down with the time of the change', async () => {
      expect(await readEpochLength(other)).toBeNull();
      expect(await noteEpochLength(db.database, 30, NOW)).toBeNull();
      expect(await readEpochLength(other)).toEqual({ days: 30, before: null, changedAt: null });
      expect(await noteEpochLength(other, 30, NOW + DAY)).toBeNull();
      expect(await noteEpochLength(db.database, 7, NOW + 2 * DAY)).toBe(30);
      expect(await noteEpochLength(other, 7, NOW + 3 * DAY)).toBeNull();
      expect(await readEpochLength(other)).toEqual({ days: 7, before: 30, changedAt: NOW + 2 * DAY });
    });
  });
}
