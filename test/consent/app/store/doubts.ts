import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  clearDoubt,
  countDoubts,
  createMarker,
  listDoubts,
  type Mark,
} from '../../../../src/consent/doubts.ts';
import { countInvalid } from '../../../../src/consent/state-mac-store.ts';
import { listHistory } from '../../../../src/consent/terms-store.ts';
import type { Database } from '../../../../src/db/engine.ts';
import { createMasterKey } from '../../../../src/keys/master-key.ts';
import { lockHead } from '../../../../src/log/entries.ts';
import type { MakeDatabase, TestDatabase } from '../../../db/contract/database.ts';
import { NOW } from '../../../support/make.ts';
import {
  addLog,
  append,
  auditLog,
  createAppend,
  createAppender,
  macOf,
  PURPOSE,
  stateOf,
  WRAP_KEY,
} from './fixture.ts';

/** A verdict that carried a grant says who gave it (contract-2 section 18). */
export function doubtsContract(make: MakeDatabase): void {
  describe('a doubt', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    const tenantOf = (kid: string) => ({
      kid,
      since: NOW,
      principalWrap: WRAP_KEY,
      wrapper: createMasterKey(WRAP_KEY, randomBytes),
      stateMac: macOf(kid),
    });
    const AUTOMATION = { class: 'undeclared_automation', source: 'ingest' } as const;
    const markOf = (kid: string, seq: number, over: Partial<Mark> = {}): Mark => ({
      tenant: tenantOf(kid),
      principal: 'ref-anna',
      seq,
      detail: AUTOMATION,
      principalId: 'anna',
      at: NOW + 5,
      ...over,
    });
    const grant = async (kid: string): Promise<number> => {
      const { entries } = await append(createAppender(db.database), createAppend(kid));
      return entries[0]?.seq ?? -1;
    };
    const givenOf = async (kid: string) => (await stateOf(other, kid)).event;
    const typesOf = async (kid: string) =>
      (await listHistory(other, kid, 'ref-anna', { before: null, limit: 9 })).map(({ choice }) => choice);
    const decide = (kid: string, requestId: string, grantSeq: number) =>
      db.database.transaction((tx) =>
        tx('decisions').insert({
          kid,
          request_id: requestId,
          decided_at: NOW,
          class: 'undeclared_automation',
          durable: null,
          verdict: JSON.stringify({ grantSeq }),
          salt: '',
          commitment: '',
        }),
      );

    it('is told once, by however many nodes at once, and leaves rows that carry their MACs', async () => {
      const kid = await addLog(db.database, 'doubt-once');
      const seq = await grant(kid);
      const nodes = [db.database, other, db.database, other].map(createMarker);
      await Promise.all(nodes.map((marker) => marker.submit(markOf(kid, seq))));
      expect(await givenOf(kid)).toMatchObject({
        seq,
        choice: 'granted',
        given: 'automation',
        doubtSeq: seq + 1,
      });
      expect(await typesOf(kid)).toEqual(['doubted', 'granted']);
      expect(await countInvalid(other, { kid, stateMac: macOf(kid) })).toBe(0);
      const { stored, computed } = await auditLog(other, kid);
      expect(stored).toEqual(computed);
      expect(await countDoubts(other, kid)).toEqual({ agent: 0, automation: 1 });
      expect((await listDoubts(other, kid, 'automation', 9)).map((one) => Number(one.seq))).toEqual([seq]);
    });

    it('leaves a withdrawal that came before it, and a tenant that is another by now', async () => {
      const kid = await addLog(db.database, 'doubt-late');
      const seq = await grant(kid);
      const marker = createMarker(db.database);
      await marker.submit(markOf(kid, seq, { tenant: { ...tenantOf(kid), since: NOW - 1 } }));
      expect(await givenOf(kid)).toMatchObject({ given: null });
      await append(createAppender(other), createAppend(kid, { choice: 'withdrawn' }));
      await marker.submit(markOf(kid, seq));
      expect(await givenOf(kid)).toMatchObject({ choice: 'withdrawn', given: null, doubtSeq: null });
      expect(await typesOf(kid)).toEqual(['withdrawn', 'granted']);
    });

    it('is not hidden by a person, and is cleared by a review of its verdict alone', async () => {
      const kid = await addLog(db.database, 'doubt-cleared');
      const seq = await grant(kid);
      const marker = createMarker(db.database);
      const person = { class: 'human', source: 'ingest' } as const;
      await marker.submit(markOf(kid, seq, { detail: person }));
      expect(await givenOf(kid)).toMatchObject({ given: 'person', doubtSeq: null });
      await marker.submit(markOf(kid, seq));
      await marker.submit(markOf(kid, seq, { detail: person }));
      expect(await givenOf(kid)).toMatchObject({ given: 'automation', doubtSeq: seq + 1 });
      await decide(kid, 'doubt-1', seq + 7);
      await decide(kid, 'doubt-2', seq);
      const clear = (requestId: string) =>
        db.database.transaction(async (tx) => {
          await lockHead(tx, kid);
          await clearDoubt(tx, tenantOf(kid), requestId, NOW + 9);
        });
      await clear('doubt-1');
      await clear('doubt-none');
      expect(await givenOf(kid)).toMatchObject({ given: 'automation' });
      await clear('doubt-2');
      await clear('doubt-2');
      expect(await givenOf(kid)).toMatchObject({ given: 'person', doubtSeq: seq + 2 });
      expect(await typesOf(kid)).toEqual(['doubted', 'doubted', 'granted']);
      // No second one of this grant; a new grant begins anew.
      await marker.submit(markOf(kid, seq));
      expect(await givenOf(kid)).toMatchObject({ given: 'person' });
      await grant(kid);
      expect(await givenOf(kid)).toMatchObject({ given: null, doubtSeq: null });
      expect(await countInvalid(other, { kid, stateMac: macOf(kid) })).toBe(0);
    });

    it('believes no row that was forged', async () => {
      const kid = await addLog(db.database, 'doubt-forged');
      const seq = await grant(kid);
      await db.database.transaction((tx) =>
        tx('consent_state')
          .where({ kid })
          .update({ expires_at: NOW * 2 }),
      );
      await createMarker(db.database).submit(markOf(kid, seq));
      expect(await countInvalid(other, { kid, stateMac: macOf(kid) })).toBe(1);
      const [row] = (await other.read('consent_state').where({ kid, purpose: PURPOSE })) as {
        given: unknown;
      }[];
      expect(row?.given).toBeNull();
    });
  });
}
