import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { countDoubts, createMarker, listDoubts, type Mark } from '../../../../src/consent/doubts-store.ts';
import { listHistory } from '../../../../src/consent/openings-store.ts';
import { countInvalid } from '../../../../src/consent/state-mac-store.ts';
import { createMasterKey } from '../../../../src/keys/master-key.ts';
import { NOW } from '../../../support/make.ts';
import {
  addLog,
  append,
  createAppend,
  createAppender,
  expectWhole,
  macOf,
  type Nodes,
  PURPOSE,
  stateOf,
  WRAP_KEY,
  wrapper,
} from './fixture.ts';

/** A verdict that carried a grant says who gave it (contract-2 section 18). */
export function doubtsContract(at: Nodes): void {
  describe('a doubt', () => {
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
      const { entries } = await append(createAppender(at.db), createAppend(kid));
      return entries[0]?.seq ?? -1;
    };
    const givenOf = async (kid: string) => (await stateOf(at.other, kid)).event;
    const typesOf = async (kid: string) =>
      (await listHistory(at.other, { kid, wrapper }, ['ref-anna'], { before: null, limit: 9 })).map(
        ({ choice }) => choice,
      );

    it('is told once, by however many nodes at once, and leaves rows that carry their MACs', async () => {
      const kid = await addLog(at.db, 'doubt-once');
      const seq = await grant(kid);
      const nodes = [at.db, at.other, at.db, at.other].map(createMarker);
      await Promise.all(nodes.map((marker) => marker.submit(markOf(kid, seq))));
      expect(await givenOf(kid)).toMatchObject({
        seq,
        choice: 'granted',
        given: 'automation',
        doubtSeq: seq + 1,
      });
      expect(await typesOf(kid)).toEqual(['doubted', 'granted']);
      expect(await countInvalid(at.other, { kid, stateMac: macOf(kid) })).toBe(0);
      await expectWhole(at.other, kid);
      expect(await countDoubts(at.other, kid)).toEqual({ agent: 0, automation: 1 });
      expect((await listDoubts(at.other, kid, 'automation', 9)).map((one) => Number(one.seq))).toEqual([seq]);
    });

    it('leaves a withdrawal that came before it, and a tenant that is another by now', async () => {
      const kid = await addLog(at.db, 'doubt-late');
      const seq = await grant(kid);
      const marker = createMarker(at.db);
      await marker.submit(markOf(kid, seq, { tenant: { ...tenantOf(kid), since: NOW - 1 } }));
      expect(await givenOf(kid)).toMatchObject({ given: null });
      await append(createAppender(at.other), createAppend(kid, { choice: 'withdrawn' }));
      await marker.submit(markOf(kid, seq));
      expect(await givenOf(kid)).toMatchObject({ choice: 'withdrawn', given: null, doubtSeq: null });
      expect(await typesOf(kid)).toEqual(['withdrawn', 'granted']);
    });

    it('believes no row that was forged', async () => {
      const kid = await addLog(at.db, 'doubt-forged');
      const seq = await grant(kid);
      await at.db.transaction((tx) =>
        tx('consent_state')
          .where({ kid })
          .update({ expires_at: NOW * 2 }),
      );
      await createMarker(at.db).submit(markOf(kid, seq));
      expect(await countInvalid(at.other, { kid, stateMac: macOf(kid) })).toBe(1);
      const [row] = (await at.other.read('consent_state').where({ kid, purpose: PURPOSE })) as {
        given: unknown;
      }[];
      expect(row?.given).toBeNull();
    });
  });
}
