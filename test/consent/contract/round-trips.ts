import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/db.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { appender, makeRequest } from './consent-support.ts';

/** How often a write of consent goes to the database while it holds the head of its tenant's log. */
export function roundTripContract(make: MakeDatabase): void {
  describe('a write of consent', () => {
    let db: TestDatabase;
    beforeAll(async () => {
      db = await make();
    });
    afterAll(() => db.close());

    // Guards against: two nodes queued for the head of one log, which was held over eleven round trips.
    it('locks and reads by one round trip on PostgreSQL, then writes all and commits by another', async () => {
      const kid = await addTenant(db.database, 'round-trips');
      const asked: string[] = [];
      const watched: Database = {
        ...db.database,
        hotTransaction: (work) =>
          db.database.hotTransaction((tx) => {
            if ('on' in tx) {
              tx.on('query', ({ sql }: { sql: string }) => asked.push(sql));
              tx.on('query-response', () => asked.push('answer'));
            }
            return work(tx);
          }),
      };
      const notify = () => [{ webhook: 'w', event: 'consent.granted', sealed: 'sealed' } as const];
      // A caller's own text reaches the database as a binding.
      const idempotency = { caller: "c'?\\", key: "k'); DROP TABLE consent_state; --?$1", bodyHash: 'b' };
      const request = { ...makeRequest(kid, { purposes: ['ads', 'stats'], notify }), idempotency };
      const first = await appender(watched).append(request);
      expect(first).toMatchObject({ entries: [{ seq: 0 }, { seq: 1 }] });
      const about = asked.filter((sql) => !/^BEGIN/i.test(sql));
      if (db.database.kind === 'postgres') {
        const kinds = about.map((sql) => /FOR UPDATE|^answer|^COMMIT|^\s*WITH \w+/m.exec(sql)?.[0]);
        // The client sends what it is asked at once without waiting between two statements.
        expect(db.database.read.client.config.connection).toMatchObject({ pipeline: true });
        const [answers, ...read] = [
          Array.from({ length: 3 }, () => 'answer'),
          'FOR UPDATE',
          'WITH q',
          'WITH q',
        ];
        expect(kinds).toEqual([...read, ...answers, 'WITH w0', 'COMMIT']);
      }
      // It wrote all of it.
      const rows = async (table: string): Promise<number> =>
        (await db.database.read(table).where({ kid })).length;
      const tables = ['ledger_entries', 'consent_openings', 'consent_state', 'consent_principals'];
      expect(await Promise.all([...tables, 'webhook_outbox', 'idempotency_keys'].map(rows))).toEqual([
        2, 2, 2, 1, 2, 1,
      ]);
      // Again, it is answered and not written; and the next one follows.
      expect(await appender(watched).append(request)).toEqual(first);
      expect(await appender(watched).append(makeRequest(kid))).toMatchObject({ entries: [{ seq: 2 }] });
    });
  });
}
