import { describe, expect, it } from 'vitest';
import { rowsOf } from '../../../src/db/sql.ts';
import { ofStoredDays } from '../../../src/ingest/devices-store.ts';
import { lockHead } from '../../../src/log/entries-store.ts';
import { eraseRows } from '../../../src/rights/erase/rows-store.ts';
import { addTenant, type MakeDatabase } from '../../db/contract/database.ts';
import { createEntry, DAY, NOW } from '../../support/make.ts';
import { createLookup, createRecorder } from '../../support/recorder.ts';
import { twoNodes } from '../../support/started.ts';

export function networkContract(make: MakeDatabase): void {
  describe('an erasure and the networks of a device', () => {
    const { db, other } = twoNodes(make);

    const visit = (kid: string, durable: string, network: string, day = DAY) =>
      createRecorder(db.database).record(
        createEntry({ kid, id: `${kid}-${durable}-${network}-${day}`, durable, network, day }),
      );
    const erase = (kid: string, ...durables: string[]) =>
      db.database.transaction(async (tx) => {
        await lockHead(tx, kid);
        const keep = { openContests: false, override: false };
        const target = { kid, durables, requests: [], linksOf: null, keep, requestRef: String };
        return eraseRows(tx, { ...target });
      });
    const pairsOf = async (kid: string): Promise<number> => {
      const query = { kid, durable: 'nobody', network: 'nowhere', day: DAY };
      return (await createLookup(other)(query)).spread.tenantPairsOfWeek;
    };
    const remainingNames = (table: string, kid: string): Promise<readonly string[]> =>
      other.read(table).where({ kid }).orderBy('durable').pluck('durable');

    it('takes what the device counted from the total of its tenant, and nothing of others', async () => {
      const kid = await addTenant(db.database, 'totals');
      const neighbour = await addTenant(db.database, 'totals-2');
      for (const network of ['n1', 'n2', 'n3']) await visit(kid, 'gone', network);
      await visit(kid, 'gone', 'n4', DAY - 2);
      await visit(kid, 'gone-too', 'n5', DAY - 2);
      for (const network of ['n1', 'n6']) await visit(kid, 'stays', network);
      await visit(neighbour, 'gone', 'n1');
      // Other nodes count in shards of their own.
      const shards = [9, 10].map((shard) => ({ kid, day: DAY, shard, pairs: 100 }));
      await db.database.transaction((tx) => tx('network_totals').insert(shards));
      expect(await pairsOf(kid)).toBe(207);
      const { counts } = await erase(kid, 'gone', 'gone-too');
      expect(counts['network-marks']?.erased).toBe(5 + 3);
      expect(await pairsOf(kid)).toBe(202);
      expect(await pairsOf(neighbour)).toBe(1);
      await erase(kid, 'gone', 'gone-too');
      expect(await pairsOf(kid)).toBe(202);
    });

    it('leaves the total as it is where a hold keeps the counts', async () => {
      const kid = await addTenant(db.database, 'totals-held');
      await visit(kid, 'held', 'n1');
      const hold = { kid, durable: 'held', basis: 'case 9', created_at: NOW };
      await db.database.transaction((tx) => tx('legal_holds').insert(hold));
      await erase(kid, 'held');
      expect(await pairsOf(kid)).toBe(1);
      expect(await remainingNames('network_days', kid)).toEqual(['held']);
    });

    it('takes every day that is stored, on a server that was off or whose clock was ahead too', async () => {
      const kid = await addTenant(db.database, 'any-day');
      for (const day of [DAY - 40, DAY - 9, DAY - 8, DAY, DAY + 1, DAY + 365]) {
        for (const durable of ['gone', 'stays']) await visit(kid, durable, 'n', day);
      }
      await erase(kid, 'gone');
      for (const table of ['network_days', 'network_marks']) {
        expect(new Set(await remainingNames(table, kid)), table).toEqual(new Set(['stays']));
        expect(await remainingNames(table, kid), table).toHaveLength(6);
      }
    });

    it.each(['network_days', 'network_marks'] as const)('seeks in %s day by day', async (table) => {
      if (db.database.kind !== 'sqlite') return;
      const query = ofStoredDays(other.read(table).where({ kid: 'k' }).whereIn('durable', ['a', 'b']), table);
      const explained = await other.read.raw(`EXPLAIN QUERY PLAN ${query.delete().toQuery()}`);
      const plan = JSON.stringify(rowsOf(explained));
      expect(plan).toContain(`SEARCH ${table} USING`);
      expect(plan).toContain('day=? AND kid=? AND durable=?');
      expect(plan).not.toContain(`SCAN ${table}`);
    });
  });
}
