import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hasUntoldActs, takeUntoldActs } from '../../../src/audit/untold-store.ts';
import type { Database } from '../../../src/db/engine.ts';
import { HOUR } from '../../../src/lib/clock.ts';
import {
  countOutbox,
  delivered,
  dueLanes,
  enqueue,
  failOverdue,
  lastFailures,
  purgeOutbox,
  recordAttempts,
  replayFrom,
  takeDue,
} from '../../../src/notify/outbox-store.ts';
import { insertWebhook, listWebhooks, removeWebhook } from '../../../src/notify/webhooks-store.ts';
import { readSnapshot } from '../../../src/tenants/snapshot-store.ts';
import type { Webhook } from '../../../src/tenants/tenant-store.ts';
import { appender, createRequest } from '../../consent/contract/consent-support.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { twoNodes } from '../../support/started.ts';

const LEASE_MS = 60_000;

function createWebhook(kid: string, id: string, over: Partial<Webhook> = {}): Webhook {
  const base = { url: 'https://hook.example/ü', events: ['decision.recorded'] as const, allowPrivate: false };
  return { kid, id, ...base, wrappedSecret: 'wrapped', createdAt: NOW, ...over };
}

export function webhookContract(make: MakeDatabase): void {
  describe('webhooks and their outbox', () => {
    const { db, other } = twoNodes(make);

    const record = (kid: string, id: string, webhooks: readonly string[]) =>
      createRecorder(db.database).record(createEntry({ kid, id, webhooks }));

    it('hands each act that weakened a safeguard to one of two nodes, oldest first, once', async () => {
      const kid = await addTenant(db.database, 'guarded');
      for (const id of ['w1', 'w2'])
        await insertWebhook(db.database, createWebhook(kid, id), operatorAt(NOW));
      expect(await hasUntoldActs(other, kid)).toBe(true);
      const actsByNode = await Promise.all(
        [db.database, other].map((node) => node.transaction((tx) => takeUntoldActs(tx, kid))),
      );
      const acts = actsByNode.flat().map(({ action, role, at, detail }) => [action, role, at, detail['id']]);
      expect(acts).toEqual([
        ['webhook.added', 'operator', NOW, 'w1'],
        ['webhook.added', 'operator', NOW, 'w2'],
      ]);
      expect(await hasUntoldActs(other, kid)).toBe(false);
      for (const id of ['w1', 'w2']) await removeWebhook(other, kid, id, operatorAt(NOW));
    });

    it('keeps a webhook with all its fields, and takes it away with what waits for it', async () => {
      const kid = await addTenant(db.database, 'kept');
      const one = createWebhook(kid, 'w1');
      const two = createWebhook(kid, 'w2', { allowPrivate: true, createdAt: NOW + 1 });
      const inserted = [one, two, createWebhook('nobody', 'w1')].map((webhook) =>
        insertWebhook(db.database, webhook, operatorAt(NOW)),
      );
      expect(await Promise.all(inserted)).toEqual([true, true, false]);
      expect(await listWebhooks(other, kid)).toEqual([one, two]);
      expect(await listWebhooks(other)).toEqual([one, two]);
      await record(kid, 'r1', ['w1', 'w2']);
      const { revision } = await readSnapshot(other, -1);
      expect(await removeWebhook(other, kid, 'w1', operatorAt(NOW))).toBe(true);
      expect(await removeWebhook(other, kid, 'w1', operatorAt(NOW))).toBe(false);
      expect(await listWebhooks(db.database, kid)).toEqual([two]);
      expect(await countOutbox(other, kid)).toEqual([{ webhook: 'w2', state: 'waiting', count: 1 }]);
      const { changed } = await readSnapshot(other, revision);
      expect(changed.map((page) => page.webhooks)).toEqual([[two]]);
      await removeWebhook(other, kid, 'w2', operatorAt(NOW));
    });

    it('puts an event into the outbox with what it tells of, or neither', async () => {
      await record('together', 'same', ['w']);
      const entry = createEntry({ kid: 'together', id: 'same', nonce: 'other', webhooks: ['w'] });
      await expect(createRecorder(db.database).record(entry)).rejects.toThrow();
      expect(await record('together', 'same', ['w'])).toBe('replay');
      expect(await countOutbox(other, 'together')).toEqual([{ webhook: 'w', state: 'waiting', count: 1 }]);
    });

    it('takes a full batch for several webhooks', async () => {
      const recorder = createRecorder(db.database);
      const entries = Array.from({ length: 400 }, (_, i) =>
        createEntry({ kid: 'full', id: `f${i}`, durable: null, webhooks: ['w1', 'w2', 'w3'] }),
      );
      const answers = await Promise.all(entries.map((entry) => recorder.record(entry)));
      expect(new Set(answers)).toEqual(new Set(['recorded']));
      const counts = await countOutbox(other, 'full');
      expect(counts.map(({ count }) => count)).toEqual([400, 400, 400]);
    });

    describe('what is due', () => {
      let outbox: TestDatabase;
      let second: Database;
      beforeEach(async () => {
        outbox = await make();
        second = await outbox.connect();
        const kid = await addTenant(outbox.database, 'acme');
        await insertWebhook(outbox.database, createWebhook(kid, 'w'), operatorAt(NOW));
        const recorder = createRecorder(outbox.database);
        for (let i = 0; i < 4; i += 1)
          await recorder.record(createEntry({ kid, id: `d${i}`, webhooks: ['w'], decidedAt: NOW + i }));
        const notify = () => [{ webhook: 'w', event: 'consent.granted' as const, ciphertext: 'sealed' }];
        await appender(outbox.database).append(createRequest(kid, { notify, now: NOW + 4 }));
      });
      afterEach(() => outbox.close());

      const take = (node: Database, now: number, limit = 10) =>
        takeDue(node, now, [{ kid: 'acme', webhook: 'w', limit }]);
      /** The oldest at NOW and the rest ten milliseconds later. @returns the numbers of four decisions and a grant */
      const takeAll = async () => {
        const takenRows = [...(await take(outbox.database, NOW)), ...(await take(second, NOW + 10))];
        return takenRows.map(({ seq }) => seq).sort((a, b) => a - b);
      };

      it('is taken once, by however many nodes at once, the oldest first', async () => {
        const [first] = await take(outbox.database, NOW);
        const decision = { event: 'decision.recorded', request_id: 'req_d0', sealed: null };
        expect(first).toMatchObject({ kid: 'acme', webhook: 'w', ...decision, created_at: NOW, attempts: 1 });
        const nodes = [outbox.database, second];
        const takenRows = (await Promise.all(nodes.map((node) => take(node, NOW + 10)))).flat();
        expect(takenRows).toHaveLength(4);
        expect(new Set([first!, ...takenRows].map(({ seq }) => seq)).size).toBe(5);
        const grant = takenRows.find(({ event }) => event === 'consent.granted');
        expect(grant).toMatchObject({ request_id: null, sealed: 'sealed' });
        expect(await take(second, NOW + 10)).toEqual([]);
      });

      it('is taken by a change of columns that no index has, so that PostgreSQL keeps the row on its page', async () => {
        if (outbox.database.kind !== 'postgres') return;
        const indexes = outbox.database.read('pg_indexes').where({ tablename: 'webhook_outbox' });
        const defined = ((await indexes.pluck('indexdef')) as string[]).join('\n');
        expect(defined).toContain('next_at');
        expect(defined).not.toMatch(/leased_until|attempts/);
      });

      it('is taken again when the node that took it says nothing for a minute', async () => {
        const [first] = await takeAll();
        const again = await take(second, NOW + LEASE_MS);
        expect(again.map(({ seq, attempts }) => [seq, attempts])).toEqual([[first, 2]]);
      });

      it('is settled, sent again where something is left to send, and forgotten once it is over or without its webhook', async () => {
        const seqs = await takeAll();
        const [first = 0, one = 0, two = 0, three = 0, grant = 0] = seqs;
        const done = { state: 'delivered', nextAt: NOW, failure: null } as const;
        const later = NOW + 3 * LEASE_MS;
        await recordAttempts(outbox.database, [{ seq: first, ...done }]);
        await recordAttempts(outbox.database, [{ seq: grant, ...done }]);
        await recordAttempts(second, [{ seq: one, state: 'failed', nextAt: NOW, failure: '410' }]);
        await recordAttempts(second, [{ seq: two, state: 'waiting', nextAt: later, failure: '503' }]);
        const rows = await outbox.database.read('webhook_outbox').orderBy('seq');
        expect(rows.map((row) => [row.seq, row.state, row.sealed, row.failure])).toEqual([
          [first, 'delivered', null, null],
          [one, 'failed', null, '410'],
          [two, 'waiting', null, '503'],
          [three, 'waiting', null, null],
          [grant, 'delivered', null, null],
        ]);
        expect((await take(second, NOW + 2 * LEASE_MS)).map(({ seq }) => seq)).toEqual([three]);

        const again = NOW + 10 * LEASE_MS;
        expect(await replayFrom(second, 'acme', 'another', 0, again)).toBe(0);
        expect(await replayFrom(second, 'acme', 'w', one, again)).toBe(3);
        const takenRows = await take(outbox.database, again);
        expect(new Set(takenRows.map(({ seq }) => seq))).toEqual(new Set(seqs.slice(1, 4)));
        expect(takenRows.map(({ attempts }) => attempts)).toEqual([1, 1, 1]);

        const entryOfGone = createEntry({ kid: 'acme', id: 'late', webhooks: ['gone'], decidedAt: NOW });
        await createRecorder(outbox.database).record(entryOfGone);
        await purgeOutbox(second, NOW);
        expect(await outbox.database.read('webhook_outbox').where({ webhook: 'w' })).toHaveLength(5);
        await purgeOutbox(second, NOW + 1000);
        const waiting = { webhook: 'w', state: 'waiting', count: 3 };
        expect(await countOutbox(outbox.database, 'acme')).toEqual([waiting]);
      });
    });

    describe('lanes', () => {
      let outbox: TestDatabase;
      const lanes = ['w1', 'w2', 'w3'].map((webhook) => ({ kid: 'acme', webhook }));
      beforeEach(async () => {
        outbox = await make();
        await addTenant(outbox.database, 'acme');
        const recorder = createRecorder(outbox.database);
        for (const { kid, webhook } of lanes)
          await insertWebhook(outbox.database, createWebhook(kid, webhook), operatorAt(NOW));
        for (let i = 0; i < 30; i += 1)
          await recorder.record(createEntry({ kid: 'acme', id: `d${i}`, webhooks: ['w1'], decidedAt: NOW }));
        await recorder.record(createEntry({ kid: 'acme', id: 'e', webhooks: ['w2'], decidedAt: NOW + 1 }));
      });
      afterEach(() => outbox.close());

      const countTaken = (takenRows: readonly { readonly webhook: string }[]) =>
        Object.fromEntries(
          lanes.map(({ webhook }) => [webhook, takenRows.filter((due) => due.webhook === webhook).length]),
        );

      it('are those with something due, each taken from by its own limit', async () => {
        const due = async (now: number) =>
          (await dueLanes(outbox.database, now, null)).map(({ webhook }) => webhook).sort();
        expect([await due(NOW - 1), await due(NOW), await due(NOW + 1)]).toEqual([[], ['w1'], ['w1', 'w2']]);
        const freePlaces = lanes.map((lane) => ({ ...lane, limit: 7 }));
        const takenCounts = countTaken(await takeDue(outbox.database, NOW + 1, freePlaces));
        expect(takenCounts).toEqual({ w1: 7, w2: 1, w3: 0 });
        expect(await dueLanes(outbox.database, NOW + 1, [])).toEqual([lanes[0]]);
      });

      it('fail what has been due for too long, and nothing that is taken or younger', async () => {
        const [lane] = lanes;
        await takeDue(outbox.database, NOW + 1, [{ ...lane!, limit: 7 }]);
        const failed = () => outbox.database.read('webhook_outbox').where({ state: 'failed' });
        await failOverdue(outbox.database, lane!, NOW - 1, 'silent');
        expect(await failed()).toEqual([]);
        await failOverdue(outbox.database, lane!, NOW, 'silent');
        const silent = expect.objectContaining({ webhook: 'w1', failure: 'silent' });
        expect(await failed()).toEqual(Array(23).fill(silent));
        expect(await lastFailures(outbox.database, lane!.kid)).toEqual(new Map([['w1', 'silent']]));
      });
    });

    it('takes all that waits for one of the staff by one node, and then lets the lane rest for an hour', async () => {
      const kid = await addTenant(db.database, 'staff');
      const lane = { kid, webhook: 'mail:ref' };
      const put = (at: number) =>
        db.database.transaction((tx) =>
          enqueue(tx, [
            { ...lane, event: 'contest.filed', requestId: null, principal: 'p', ciphertext: 's', at },
          ]),
        );
      const isDue = async (now: number) => (await dueLanes(other, now, [lane])).length > 0;
      const take = async (now: number) => {
        const nodes = [db.database, other].map((node) => takeDue(node, now, [{ ...lane, limit: 10 }]));
        return (await Promise.all(nodes)).filter((rows) => rows.length > 0);
      };
      for (let i = 0; i < 3; i += 1) await put(NOW);
      expect(await isDue(NOW)).toBe(true);
      const [rows, secondRow] = await take(NOW);
      expect([rows?.length, secondRow]).toEqual([3, undefined]);
      await put(NOW);
      // While the mail is on its way, and for an hour after it.
      expect([await isDue(NOW), await take(NOW)]).toEqual([false, []]);
      await recordAttempts(
        db.database,
        (rows ?? []).map((row) => delivered(row, NOW)),
      );
      const later = NOW + HOUR;
      expect([await isDue(later - 1), await take(later - 1)]).toEqual([false, []]);
      expect(await isDue(later)).toBe(true);
      expect((await take(later)).map(({ length }) => length)).toEqual([1]);
      // A delivered event has nothing left to send.
      expect(await replayFrom(other, kid, 'mail', 0, later)).toBe(1);
    });
  });
}
