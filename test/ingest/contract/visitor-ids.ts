import { describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { createRecorder } from '../../../src/ingest/store.ts';
import { lockHead } from '../../../src/log/entries-store.ts';
import { placeHold, releaseHold } from '../../../src/rights/erase/hold-store.ts';
import { eraseRows } from '../../../src/rights/erase/rows-store.ts';
import { durableOfVisitor } from '../../../src/rights/link-store.ts';
import { deleteExpired } from '../../../src/rights/retention/store.ts';
import {
  addTenant,
  holdHot,
  holdTransaction,
  type MakeDatabase,
  someoneWaits,
} from '../../db/contract/database.ts';
import { createEntry, DAY, NOW } from '../../support/make.ts';
import { twoNodes } from '../../support/started.ts';

/** Whoever was told a visitorId reaches by it what is stored of the device, whatever ran beside the visit. */
export function visitorIdContract(make: MakeDatabase): void {
  describe('the visitorId of a decision', () => {
    const { db, other } = twoNodes(make);

    const DEVICE = 'the-device';
    const visit = (database: Database, kid: string, id: string, decidedAt = NOW): Promise<unknown> =>
      createRecorder(database, () => performance.now()).record({
        claim: createEntry({ kid, id }).claim,
        device: { kid, durable: DEVICE, network: 'n', day: DAY },
        decide: (knownDevice) =>
          createEntry({ kid, id, durable: DEVICE, decidedAt, marked: knownDevice?.marked ?? false }),
      });

    const eraseIn = async (tx: Parameters<typeof eraseRows>[0], kid: string) => {
      await lockHead(tx, kid);
      const keep = { openContests: false, override: false };
      const target = { kid, durables: [DEVICE], requests: [], linksOf: null, keep, requestRef: String };
      return eraseRows(tx, target);
    };
    const erase = (database: Database, kid: string) => database.transaction((tx) => eraseIn(tx, kid));

    const decisions = (kid: string): Promise<string[]> =>
      other.read('decisions').where({ kid }).orderBy('request_id').pluck('request_id');
    const visitorIdOf = (kid: string): string =>
      createEntry({ kid, id: 'x', durable: DEVICE }).identified?.visitorId ?? '';
    const reached = (kid: string): Promise<string | null> => durableOfVisitor(other, kid, visitorIdOf(kid));

    const heldVisit = (kid: string, id: string, decidedAt = NOW) =>
      holdHot(db.database, (database) => visit(database, kid, id, decidedAt));

    it('leads to its device where an erasure commits between the look-up and the write', async () => {
      const kid = await addTenant(db.database, 'beside-erasure');
      await visit(db.database, kid, 'a');
      const erasure = await holdTransaction(db.database, (tx) => eraseIn(tx, kid));
      const visited = visit(other, kid, 'b');
      await someoneWaits(other);
      await erasure.commit();
      await visited;
      expect(await decisions(kid)).toEqual(['req_b']);
      expect(await reached(kid)).toBe(DEVICE);
    });

    it('leads to its device where the visit commits in the middle of an erasure', async () => {
      const kid = await addTenant(db.database, 'within-erasure');
      await visit(db.database, kid, 'a');
      const openVisit = await heldVisit(kid, 'b');
      const erased = erase(other, kid);
      await someoneWaits(other);
      await openVisit.commit();
      await erased;
      // The database decides which of the two came first.
      if ((await decisions(kid)).length > 0) expect(await reached(kid)).toBe(DEVICE);
      else expect(await reached(kid)).toBeNull();
    });

    it('leads to its device where retention takes the sighting beside the visit', async () => {
      const kid = await addTenant(db.database, 'beside-retention');
      const day = 86_400_000;
      await visit(db.database, kid, 'a', NOW - 40 * day);
      const openVisit = await heldVisit(kid, 'b');
      const retained = deleteExpired(other, { kid, days: 30, now: NOW });
      await someoneWaits(other);
      await openVisit.commit();
      await retained;
      expect(await decisions(kid)).toEqual(['req_b']);
      expect(await reached(kid)).toBe(DEVICE);
    });

    it('leads to its device after a retention and an erasure that its hold met, until the release', async () => {
      const kid = await addTenant(db.database, 'held-device');
      await visit(db.database, kid, 'a', NOW - 90 * 86_400_000);
      const hold = { kid, durable: DEVICE };
      await db.database.transaction((tx) => placeHold(tx, { ...hold, basis: 'case 1', createdAt: NOW }));
      await deleteExpired(db.database, { kid, days: 30, now: NOW + 90 * 86_400_000 });
      expect(await reached(kid)).toBe(DEVICE);
      const { counts, others: needles } = await erase(db.database, kid);
      expect(counts['visitor-index']).toEqual({ erased: 0, retained: 1, basis: 'case 1' });
      expect(needles).toEqual([]);
      expect(await reached(kid)).toBe(DEVICE);
      await db.database.transaction((tx) => releaseHold(tx, hold));
      expect((await erase(db.database, kid)).counts['visitor-index']).toEqual({ erased: 1, retained: 0 });
      expect(await reached(kid)).toBeNull();
    });

    it('returns with the next visit where the index has lost it', async () => {
      const kid = await addTenant(db.database, 'lost-index');
      await visit(db.database, kid, 'a');
      await db.database.transaction((tx) => tx('visitor_index').where({ kid }).delete());
      await visit(db.database, kid, 'b');
      expect(await reached(kid)).toBe(DEVICE);
    });
  });
}
