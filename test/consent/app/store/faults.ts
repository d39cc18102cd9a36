import { describe, expect, it } from 'vitest';
import type { AppendRequest } from '../../../../src/consent/plan-write.ts';
import { createConsentStateReader, type StateQuery } from '../../../../src/consent/state-store.ts';
import type { Database } from '../../../../src/db/engine.ts';
import { WrongMasterKey } from '../../../../src/keys/master-key.ts';
import { TenantGone } from '../../../../src/lib/errors.ts';
import { removeTenant } from '../../../../src/rights/tenant-rows-store.ts';
import { NOW } from '../../../support/make.ts';
import {
  addLog,
  allEntries,
  append,
  createAppend,
  createAppender,
  expectWhole,
  macOf,
  type Nodes,
  PURPOSE,
} from './fixture.ts';

/** Batches share a commit, and no failure: what is wrong with one principal or one tenant is theirs alone. */
export function faultsContract(at: Nodes): void {
  describe('a fault in a batch', () => {
    /** On PostgreSQL a batch is of one tenant. */
    const ofTwoTenants = (): number => (at.db.kind === 'postgres' ? 2 : 1);
    /** Each request ends as the number of its entry or as the name of the error. */
    async function appendAll(requests: readonly AppendRequest[]) {
      let transactions = 0;
      const counted: Database = {
        ...at.db,
        transaction: (work) => {
          transactions += 1;
          return at.db.transaction(work);
        },
      };
      const appender = createAppender(counted);
      const settled = await Promise.allSettled(requests.map((request) => appender.append(request)));
      const ends = settled.map((one) => {
        if (one.status === 'rejected') return (one.reason as Error).name;
        return typeof one.value === 'string' ? one.value : one.value.entries[0]?.seq;
      });
      return { ends, transactions };
    }
    const query = (kid: string, principalId = 'anna'): StateQuery => ({
      kid,
      principal: `ref-${principalId}`,
      purpose: PURPOSE,
      mac: macOf(kid),
    });
    const choiceOf = async (kid: string, principalId?: string): Promise<unknown> =>
      (await createConsentStateReader(at.other).read(query(kid, principalId))).event?.choice;
    const who = (kid: string, principalId: string, over: object = {}): AppendRequest =>
      createAppend(kid, { principalId, choice: 'withdrawn', ...over });

    it('a damaged row of one principal fails their own writes, at every retry, and none beside them', async () => {
      const [acme, beta] = [await addLog(at.db, 'damaged'), await addLog(at.db, 'beside-damaged')];
      await append(createAppender(at.db), createAppend(acme));
      await at.db.transaction((tx) =>
        tx('consent_principals').where({ kid: acme, principal: 'ref-anna' }).update({ wrapped_key: 'AAAA' }),
      );
      for (const round of [0, 1]) {
        const { ends, transactions } = await appendAll([
          who(acme, 'anna'),
          who(acme, 'bob'),
          who(beta, 'carl'),
          who(acme, 'anna', { idempotency: { caller: 'c', key: `k${round}`, bodyHash: 'b' } }),
        ]);
        expect(ends).toEqual([WrongMasterKey.name, 3 + round, 2 + round, WrongMasterKey.name]);
        expect(transactions).toBe(ofTwoTenants());
      }
      expect(await choiceOf(acme, 'bob')).toBe('withdrawn');
      // The earlier choice still stands, because a check needs no key.
      expect(await choiceOf(acme)).toBe('granted');
      await expectWhole(at.other, acme);
    });

    it('a tenant that went is gone for its own callers alone, in writes and in checks', async () => {
      const [acme, beta] = [await addLog(at.db, 'stays'), await addLog(at.db, 'went')];
      await removeTenant(at.other, beta);
      const { ends, transactions } = await appendAll([who(beta, 'x'), who(acme, 'anna'), who(beta, 'y')]);
      expect(ends).toEqual([TenantGone.name, 2, TenantGone.name]);
      expect(transactions).toBe(ofTwoTenants());
      const reader = createConsentStateReader(at.other);
      const checks = await Promise.allSettled([beta, acme, beta].map((kid) => reader.read(query(kid))));
      expect(checks).toMatchObject([
        { reason: { code: 'unauthenticated', status: 401 } },
        { value: { event: { choice: 'withdrawn' } } },
        { reason: { code: 'unauthenticated' } },
      ]);
      await expect(reader.readAll([query(beta)])).rejects.toThrow(TenantGone);
      expect(await at.other.read('consent_principals').where({ kid: beta })).toEqual([]);
    });

    it('a tenant that was made anew under the same kid gets nothing of the one before', async () => {
      const kid = await addLog(at.db, 'anew');
      const old = who(kid, 'old');
      await removeTenant(at.other, kid);
      await addLog(at.db, kid, NOW + 1);
      const { ends } = await appendAll([old, who(kid, 'new', { since: NOW + 1 })]);
      expect(ends).toEqual([TenantGone.name, 2]);
      expect(await at.other.read('consent_openings').where({ kid }).pluck('principal')).toEqual(['ref-new']);
    });

    it('a log that was lost or altered is a fault of its tenant, and no 401', async () => {
      const kids = ['whole', 'lost', 'altered'].map((name) => `log-${name}`);
      const [whole = '', headless = '', altered = ''] = kids;
      for (const kid of kids) await addLog(at.db, kid);
      await at.db.transaction(async (tx) => {
        await tx('ledger_heads').where({ kid: headless }).delete();
        await tx('ledger_heads').where({ kid: altered }).update({ size: 1 });
      });
      const { ends } = await appendAll([whole, headless, altered, whole].map((kid, i) => who(kid, `p${i}`)));
      expect(ends).toEqual([2, 'Error', 'Error', 3]);
      const reader = createConsentStateReader(at.other);
      const checks = await Promise.allSettled([headless, whole].map((kid) => reader.read(query(kid))));
      expect(checks).toMatchObject([
        { reason: { message: 'a tenant has lost its log' } },
        { value: { gpc: false } },
      ]);
      await expectWhole(at.other, whole);
    });

    it('what only one request throws is that request’s, and the others are written once', async () => {
      const kid = await addLog(at.db, 'throws');
      const requests = Array.from({ length: 50 }, (_, i) => who(kid, `p${i}`));
      const notify = (): never => {
        throw new RangeError('of one');
      };
      const { ends } = await appendAll([...requests, who(kid, 'bad', { notify }), who(kid, 'last')]);
      expect(ends.filter((end) => typeof end === 'number')).toHaveLength(51);
      expect(ends.filter((end) => end === 'RangeError')).toHaveLength(1);
      expect(await allEntries(at.other, kid)).toHaveLength(2 + 51);
      expect(await choiceOf(kid, 'bad')).toBeUndefined();
      await expectWhole(at.other, kid);
    });
  });
}
