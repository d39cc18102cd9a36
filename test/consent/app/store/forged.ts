import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { countInvalid } from '../../../../src/consent/state-mac-store.ts';
import { areTermsAuthentic, macTerms, savePurposes } from '../../../../src/consent/terms-store.ts';
import { ConsentStateInvalid, STATE_INVALID } from '../../../../src/db/meta-store.ts';
import { createFirstPurpose } from '../../../../src/tenants/purposes.ts';
import { operatorAt } from '../../../support/act.ts';
import { NOW } from '../../../support/make.ts';
import {
  addLog,
  append,
  createAppend,
  createAppender,
  macOf,
  type Nodes,
  PURPOSE,
  stateOf,
} from './fixture.ts';

type Row = Readonly<Record<string, unknown>>;

/** A writer of the database without the tenant's key puts these into rows that answer a check. */
const FORGERIES: readonly (readonly [why: string, table: string, row: Row])[] = [
  ['a withdrawal that became a grant', 'consent_state', { choice: 'granted', expires_at: NOW + 1000 }],
  ['an expiry', 'consent_state', { expires_at: NOW + 1 }],
  ['a policy version', 'consent_state', { policy_version: 9 }],
  ['the proof of another entry', 'consent_state', { seq: 1 }],
  ['the time of a choice', 'consent_state', { at: NOW - 1 }],
  ['a yes over the signal', 'consent_state', { over_gpc: true }],
  ['a person who gave it', 'consent_state', { given: 'person' }],
  ['a doubt that seems to be there already', 'consent_state', { doubt_seq: 0 }],
  ['no MAC', 'consent_state', { mac: null }],
  ['a signal that is gone', 'consent_principals', { gpc: false }],
  ['a purpose that the signal spares', 'consent_principals', { gpc_except: JSON.stringify([PURPOSE]) }],
  ['an erasure', 'consent_principals', { erased_at: NOW }],
  ['no MAC of the person', 'consent_principals', { mac: null }],
];

/** Adds withdrawals under a signal, writes rows without the key, and hears which tenants are reported. */
function forgerOn(at: Nodes) {
  let reportedKids: unknown[] = [];
  const hear = (kid: unknown): void => void reportedKids.push(kid);
  beforeAll(() => void subscribe(STATE_INVALID, hear));
  afterAll(() => void unsubscribe(STATE_INVALID, hear));
  return {
    reported: () => reportedKids,
    addWithdrawn: async (kid: string): Promise<void> => {
      await addLog(at.db, kid);
      await append(createAppender(at.db), createAppend(kid, { choice: 'withdrawn', gpc: true }));
      reportedKids = [];
    },
    forge: (kid: string, table: string, row: Row): Promise<unknown> =>
      at.db.transaction((tx) => tx(table).where({ kid }).update(row)),
  };
}

export function forgedContract(at: Nodes): void {
  describe('rows written without the key', () => {
    const { reported, addWithdrawn, forge } = forgerOn(at);

    it('a row of somebody else, a state without its person', async () => {
      await addWithdrawn('moved');
      const granted = { principalId: 'bea', gpc: false } as const;
      await append(createAppender(at.db), createAppend('moved', granted));
      const read = (table: string, principal: string) =>
        at.other
          .read(table)
          .where({ kid: 'moved', principal: `ref-${principal}` })
          .first();
      const { principal: _, ...state } = await read('consent_state', 'bea');
      await at.db.transaction((tx) =>
        tx('consent_state').where({ kid: 'moved', principal: 'ref-anna' }).update(state),
      );
      await expect(stateOf(at.other, 'moved')).rejects.toThrow(ConsentStateInvalid);
      await at.db.transaction((tx) => tx('consent_principals').where({ kid: 'moved' }).delete());
      await expect(stateOf(at.other, 'moved', 'bea')).rejects.toThrow(ConsentStateInvalid);
    });

    it('a withdrawal goes through on a forged row, and makes nothing of it believed', async () => {
      await addWithdrawn('healed');
      await forge('healed', 'consent_principals', { gpc: false, gpc_except: '["ads"]' });
      await append(createAppender(at.db), createAppend('healed', { choice: 'withdrawn' }));
      expect(reported()).toEqual(['healed']);
      expect(await stateOf(at.other, 'healed')).toMatchObject({ gpc: true, event: { choice: 'withdrawn' } });
      expect(await stateOf(at.other, 'healed', 'anna', 'ads')).toMatchObject({ gpc: true });
    });

    it('one forged row takes no other one with it', async () => {
      await addWithdrawn('beside');
      await append(createAppender(at.db), createAppend('beside', { principalId: 'bea' }));
      const anna = { kid: 'beside', principal: 'ref-anna' };
      await at.db.transaction((tx) => tx('consent_state').where(anna).update({ choice: 'granted' }));
      const [forged, good] = await Promise.allSettled([
        stateOf(at.other, 'beside'),
        stateOf(at.other, 'beside', 'bea'),
      ]);
      expect([forged.status, good.status]).toEqual(['rejected', 'fulfilled']);
    });
  });
}

/** A MAC is over what was read, whatever the database. */
export function forgedRules(at: Nodes): void {
  describe('each column written without the key', () => {
    const { reported, addWithdrawn, forge } = forgerOn(at);
    const terms = (kid: string) => ({ kid, stateMac: macOf(kid) });

    it.each(FORGERIES)('%s answers nobody', async (title, table, row) => {
      const kid = `forged-${title.replaceAll(' ', '-')}`;
      await addWithdrawn(kid);
      expect(await stateOf(at.other, kid)).toMatchObject({ gpc: true, event: { choice: 'withdrawn' } });
      await forge(kid, table, row);
      await expect(stateOf(at.other, kid)).rejects.toThrow(ConsentStateInvalid);
      expect(reported()).toEqual([kid]);
      expect(await countInvalid(at.other, terms(kid))).toBe(1);
    });

    it.each([
      ['a policy of a purpose', { gpc: 'ignore' }],
      ['how long a grant lasts', { ttl_days: 9999 }],
    ])('terms: %s, on which no change is made', async (title, row) => {
      const kid = `terms-${title.replaceAll(' ', '-')}`;
      await addLog(at.db, kid);
      expect(await areTermsAuthentic(at.other.read, terms(kid))).toBe(true);
      await forge(kid, 'purposes', row);
      expect(await areTermsAuthentic(at.other.read, terms(kid))).toBe(false);
      const change = savePurposes(at.db, terms(kid), [createFirstPurpose()], operatorAt(NOW));
      await expect(change).rejects.toThrow(ConsentStateInvalid);
      await at.db.transaction((tx) => macTerms(tx, terms(kid)));
      await at.db.transaction((tx) => tx('purposes').where({ kid }).delete());
      expect(await areTermsAuthentic(at.other.read, terms(kid))).toBe(false);
    });
  });
}
