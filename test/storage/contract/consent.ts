import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Appended } from '../../../src/consent/ports.ts';
import { makeMasterKey } from '../../../src/keys/master-key.ts';
import { commitBody, commitSubject } from '../../../src/ledger/personal-commitment.ts';
import { principalKeyContext } from '../../../src/storage/consent-append.ts';
import { makeConsentStateReader } from '../../../src/storage/consent-state.ts';
import { findOpening, listHistory, listState } from '../../../src/storage/consent-store.ts';
import type { Database } from '../../../src/storage/db.ts';
import { readEntries } from '../../../src/storage/ledger-read.ts';
import { NOW, seededRandom } from '../../support/make.ts';
import {
  appender,
  DAY_MS,
  makeRequest,
  type RequestOptions,
  readState as read,
  WRAP_KEY,
} from './consent-support.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from './database.ts';

export function consentContract(make: MakeDatabase): void {
  describe('consent', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    const size = async (kid: string): Promise<number> => (await readEntries(other, kid, 0, 1000)).length;

    it('is seen on every node once it was answered', async () => {
      const kid = await addTenant(db.database, 'seen');
      await appender(db.database).append(makeRequest(kid, { purposes: ['first'] }));
      const answer = (await appender(db.database).append(
        makeRequest(kid, { purposes: ['ads', 'mail'] }),
      )) as Appended;
      expect(answer.entries.map(({ purpose, seq }) => [purpose, seq])).toEqual([
        ['ads', 1],
        ['mail', 2],
      ]);
      const [ads, mail] = answer.entries;
      const state = await read(other, kid);
      expect(state).toEqual({
        erased: false,
        gpc: false,
        event: { choice: 'granted', policyVersion: 2, expiresAt: NOW + DAY_MS, seq: 1, hash: ads?.hash },
        head: { seq: 2, hash: mail?.hash },
      });
      await appender(other).append(makeRequest(kid, { choice: 'withdrawn' }));
      expect((await read(db.database, kid)).event).toMatchObject({
        choice: 'withdrawn',
        expiresAt: null,
        seq: 3,
      });
      expect((await read(db.database, kid, 'mail')).event).toMatchObject({ choice: 'granted', seq: 2 });
    });

    it('knows nothing of others: only the head of their log', async () => {
      const kid = await addTenant(db.database, 'others');
      await appender(db.database).append(makeRequest(kid));
      for (const [purpose, principal] of [
        ['ads', 'ref-2'],
        ['mail', 'ref-1'],
      ] as const)
        expect(await read(other, kid, purpose, principal)).toMatchObject({ event: null, head: { seq: 0 } });
      await expect(read(other, 'nobody')).rejects.toThrow();
    });

    it('reads many in their order', async () => {
      const kid = await addTenant(db.database, 'many');
      const principals = Array.from({ length: 50 }, (_, i) => `ref-${i}`);
      const writer = appender(db.database);
      await Promise.all(
        principals.filter((_, i) => i % 2).map((principal) => writer.append(makeRequest(kid, { principal }))),
      );
      const queries = principals.map((principal) => ({ kid, principal, purpose: 'ads' }));
      const states = await makeConsentStateReader(other).readAll(queries);
      expect(states.map(({ event }) => event !== null)).toEqual(principals.map((_, i) => i % 2 === 1));
      expect(new Set(states.map(({ head }) => head.seq))).toEqual(new Set([24]));
    });

    it('says what is in the log and how it opens, by the principal’s own key', async () => {
      const kid = await addTenant(db.database, 'opened');
      await appender(db.database).append(makeRequest(kid, { purposes: ['ads', 'mail'], gpc: true }));
      const row = await other.read('consent_principals').where({ kid }).first();
      const random = seededRandom('unused');
      const key = makeMasterKey(WRAP_KEY, random).unwrap(row.wrapped_key, principalKeyContext(kid, 'ref-1'));
      const salts = new Set<string>();
      for (const stored of await readEntries(other, kid, 0, 10)) {
        const opening = await findOpening(other, kid, stored.seq);
        const entry = JSON.parse(stored.entry) as Record<string, unknown>;
        const salt = Buffer.from(opening?.salt ?? '', 'base64url');
        salts.add(opening?.salt ?? '');
        expect(entry).toMatchObject({
          type: 'consent.granted',
          purpose: opening?.purpose,
          time: '2025-11-20T09:13:20Z',
        });
        expect(entry['subject']).toBe(commitSubject({ key, salt, principalId: 'id of ref-1' }));
        expect(entry['body']).toBe(commitBody({ key, salt, detail: opening!.detail }));
        expect(stored.entry).not.toMatch(/ref-1|backend/);
      }
      expect(salts.size).toBe(2);
      expect(await findOpening(other, kid, 99)).toBeNull();
    });

    it('keeps what is known of GPC until a write says otherwise', async () => {
      const kid = await addTenant(db.database, 'gpc');
      const write = (options: RequestOptions) => appender(db.database).append(makeRequest(kid, options));
      const known = async (): Promise<boolean> => (await read(other, kid)).gpc;
      await write({});
      expect(await known()).toBe(false);
      await write({ gpc: true });
      expect(await known()).toBe(true);
      await write({ choice: 'withdrawn' });
      expect(await known()).toBe(true);
      await write({ gpc: false });
      expect(await known()).toBe(false);
    });

    it('stays erased until a grant, which takes a new key', async () => {
      const kid = await addTenant(db.database, 'erased');
      await appender(db.database).append(makeRequest(kid));
      await db.database.transaction((tx) =>
        tx('consent_principals').where({ kid }).update({ wrapped_key: null, erased_at: NOW }),
      );
      expect((await read(other, kid)).erased).toBe(true);
      await appender(db.database).append(makeRequest(kid, { choice: 'withdrawn' }));
      expect((await read(other, kid)).erased).toBe(true);
      await appender(db.database).append(makeRequest(kid));
      expect((await read(other, kid)).erased).toBe(false);
      const row = await other.read('consent_principals').where({ kid }).first();
      expect(row.wrapped_key).not.toBeNull();
    });

    it('tells state and history of one principal, newest first and in pages', async () => {
      const kid = await addTenant(db.database, 'history');
      const write = (options: RequestOptions) => appender(db.database).append(makeRequest(kid, options));
      await write({ purposes: ['mail'], now: NOW });
      await write({ principal: 'ref-2' });
      await write({ purposes: ['ads', 'mail'], choice: 'denied', now: NOW + 1 });
      const state = await listState(other, kid, 'ref-1');
      expect(state.map(({ purpose, choice, at, seq }) => [purpose, choice, at, seq])).toEqual([
        ['ads', 'denied', NOW + 1, 2],
        ['mail', 'denied', NOW + 1, 3],
      ]);
      const seqs = async (before: number | null, limit: number): Promise<number[]> =>
        (await listHistory(other, kid, 'ref-1', { before, limit })).map(({ seq }) => seq);
      expect(await seqs(null, 2)).toEqual([3, 2]);
      expect(await seqs(2, 2)).toEqual([0]);
      expect(await listHistory(other, kid, 'nobody', { before: null, limit: 9 })).toEqual([]);
    });

    it('keeps one order when two nodes write for one principal at once', async () => {
      const kid = await addTenant(db.database, 'race');
      const nodes = [appender(db.database), appender(other)];
      const choices = ['granted', 'denied', 'withdrawn'] as const;
      const answers = await Promise.all(
        Array.from({ length: 40 }, async (_, i) => {
          const choice = choices[i % 3]!;
          const answer = (await nodes[i % 2]!.append(makeRequest(kid, { choice }))) as Appended;
          return { choice, ...answer.entries[0]! };
        }),
      );
      const last = answers.sort((a, b) => a.seq - b.seq).at(-1)!;
      expect(answers.map(({ seq }) => seq)).toEqual(Array.from({ length: 40 }, (_, i) => i));
      expect((await read(other, kid)).event).toMatchObject({ choice: last.choice, seq: 39, hash: last.hash });
    });

    it('writes nothing of a batch that fails', async () => {
      const kid = await addTenant(db.database, 'batch');
      const writer = appender(db.database);
      const failed = await Promise.allSettled(
        [kid, 'no-log'].map((name) => writer.append(makeRequest(name))),
      );
      expect(failed.map(({ status }) => status)).toContain('rejected');
      expect(await other.read('consent_openings').where({ kid: 'no-log' })).toEqual([]);
      const accepted = failed.filter(({ status }) => status === 'fulfilled').length;
      expect(await size(kid)).toBe(accepted);
      expect(await writer.append(makeRequest(kid))).toMatchObject({ entries: [{ seq: accepted }] });
    });
  });
}
