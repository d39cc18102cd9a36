import { describe, expect, it } from 'vitest';
import { decisionSchema, writeResponseSchema } from '../../../src/schema/consent.ts';
import { ORIGIN } from '../../support/constants.ts';
import { execute, executeSealed } from '../../support/database.ts';
import { expectError } from '../../support/expect.ts';
import type { Reply } from '../../support/http.ts';
import { started } from '../../support/started.ts';
import { type Action, createBrowser, PURPOSE, startApi } from './support/api.ts';

const DAY_MS = 86_400_000;

const SUBJECT = expect.stringMatching(/^[\w-]{43}$/) as unknown;

const api = started(() =>
  startApi({
    purposes: [
      { id: 'ads', ttlDays: 1 },
      { id: 'orders', gpc: 'ignore', ttlDays: 365 },
    ],
  }),
);

describe('a person who was never asked', () => {
  it('is denied by a 200, with the head of the log', async () => {
    const decision = await api.check('nobody');
    expect(decisionSchema.strict().parse(decision)).toEqual(decision);
    const lines = (await api.get('/v1/ledger/export')).text.trimEnd().split('\n');
    const { seq, hash } = JSON.parse(lines.at(-1) ?? '') as { seq: number; hash: string };
    expect(decision).toEqual({
      allowed: false,
      reason: 'never-asked',
      proof: { seq, hash },
      policyVersion: 0,
      expiresAt: null,
      given: 'unknown',
      subject: SUBJECT,
    });
  });
});

describe('grant, deny, withdraw', () => {
  it('a grant allows at once, until it expires', async () => {
    const before = Date.now();
    const { seq, hash } = await api.write('grant', { principalId: 'anna', purposes: ['ads'] });
    const decision = await api.check('anna', 'ads');
    expect(decision).toMatchObject({
      allowed: true,
      reason: 'granted',
      proof: { seq, hash },
      policyVersion: 0,
    });
    const expiresAt = Date.parse(decision.expiresAt ?? '');
    expect(expiresAt).toBeGreaterThanOrEqual(before + DAY_MS);
    expect(expiresAt).toBeLessThanOrEqual(Date.now() + DAY_MS);
    expect(await api.check('anna')).toMatchObject({ allowed: false, reason: 'never-asked' });
  });

  it('a withdrawal denies the very next check; a new grant allows again', async () => {
    await api.write('grant', { principalId: 'ben' });
    expect(await api.check('ben')).toMatchObject({ allowed: true });
    const { seq, hash } = await api.write('withdraw', { principalId: 'ben' });
    expect(await api.check('ben')).toEqual({
      allowed: false,
      reason: 'withdrawn',
      proof: { seq, hash },
      policyVersion: 0,
      expiresAt: null,
      given: 'unknown',
      subject: SUBJECT,
    });
    await api.write('grant', { principalId: 'ben' });
    expect(await api.check('ben')).toMatchObject({ allowed: true, reason: 'granted' });
    await api.write('deny', { principalId: 'ben' });
    expect(await api.check('ben')).toMatchObject({ allowed: false, reason: 'denied' });
  });

  it('names every entry, in the order asked for, and the last one outside', async () => {
    const body = { principalId: 'cleo', purposes: ['orders', PURPOSE, 'ads'] };
    const answer = await api.write('grant', body);
    expect(writeResponseSchema.strict().parse(answer)).toEqual(answer);
    expect(answer.entries.map(({ purpose }) => purpose)).toEqual(['orders', PURPOSE, 'ads']);
    const [first, , last] = answer.entries;
    expect(answer).toMatchObject({ seq: last?.seq, hash: last?.hash });
    expect(answer.entries.map(({ seq }) => seq - (first?.seq ?? 0))).toEqual([0, 1, 2]);
  });

  it('a withdrawal of one purpose leaves the others', async () => {
    await api.write('grant', { principalId: 'dora', purposes: ['ads', 'orders'] });
    await api.write('withdraw', { principalId: 'dora', purposes: ['ads'] });
    expect(await api.check('dora', 'ads')).toMatchObject({ reason: 'withdrawn' });
    expect(await api.check('dora', 'orders')).toMatchObject({ reason: 'granted' });
  });

  it('a person may withdraw what was never granted', async () => {
    await api.write('withdraw', { principalId: 'emil' });
    expect(await api.check('emil')).toMatchObject({ reason: 'withdrawn' });
  });

  it('what was answered 201 holds for the very next check, under load', async () => {
    let busy = true;
    const load = Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        for (let n = 0; busy; n += 1) {
          if (i % 2 === 0) await api.check(`load-${i}`);
          else await api.write(n % 2 === 0 ? 'grant' : 'withdraw', { principalId: `load-${i}` });
        }
      }),
    );
    const outcomes: string[] = [];
    for (let n = 0; n < 10; n += 1) {
      for (const action of ['grant', 'withdraw'] as const) {
        const { seq } = await api.write(action, { principalId: 'fritz' });
        const { reason, proof } = await api.check('fritz');
        outcomes.push(`${action}: ${reason} ${proof.seq - seq}`);
      }
    }
    busy = false;
    await load;
    expect([...new Set(outcomes)].sort()).toEqual(['grant: granted 0', 'withdraw: withdrawn 0']);
  });
});

describe('expiry', () => {
  it('a grant that ran out denies, and a new one starts a new term', async () => {
    const { seq, hash } = await api.write('grant', { principalId: 'gero', purposes: ['ads'] });
    await executeSealed(
      api.gpd.dataDir,
      `UPDATE consent_state SET expires_at = ${Date.now()} WHERE seq = ${seq}`,
    );
    expect(await api.check('gero', 'ads')).toEqual({
      allowed: false,
      reason: 'expired',
      proof: { seq, hash },
      policyVersion: 0,
      expiresAt: null,
      given: 'unknown',
      subject: SUBJECT,
    });
    await api.write('grant', { principalId: 'gero', purposes: ['ads'] });
    expect(await api.check('gero', 'ads')).toMatchObject({ allowed: true });
  });
});

describe('Global Privacy Control', () => {
  it('a grant under it is recorded, and has no effect until a write says that it is gone', async () => {
    const body = { principalId: 'hanna', purposes: [PURPOSE, 'orders'] };
    const { entries } = await api.write('grant', { ...body, gpc: true });
    expect(await api.check('hanna')).toMatchObject({
      allowed: false,
      reason: 'gpc-opt-out',
      proof: { seq: entries[0]?.seq, hash: entries[0]?.hash },
      expiresAt: null,
      given: 'unknown',
      subject: SUBJECT,
    });
    expect(await api.check('hanna', 'orders')).toMatchObject({ allowed: true, reason: 'granted' });
    await api.write('grant', body);
    expect(await api.check('hanna')).toMatchObject({ reason: 'gpc-opt-out' });
    await api.write('grant', { ...body, purposes: [PURPOSE], gpc: false });
    expect(await api.check('hanna')).toMatchObject({ allowed: true, reason: 'granted' });
  });

  it.each(['grant', 'deny', 'withdraw'] as const)(
    'a %s about another purpose never ends an opt-out',
    async (action) => {
      const principalId = `other ${action}`;
      await api.write('grant', { principalId });
      await api.write(action, { principalId, purposes: ['orders'], gpc: true });
      expect(await api.check(principalId)).toMatchObject({ reason: 'gpc-opt-out' });
      for (const purpose of ['orders', 'ads'])
        await api.write(action, { principalId, purposes: [purpose], gpc: false });
      expect(await api.check(principalId)).toMatchObject({ allowed: false, reason: 'gpc-opt-out' });
    },
  );

  it.each(['deny', 'withdraw'] as const)('a %s of the purpose itself does not end it', async (action) => {
    const principalId = `own ${action}`;
    await api.write('grant', { principalId, gpc: true });
    await api.write(action, { principalId, gpc: false });
    expect(await api.check(principalId)).toMatchObject({ reason: 'gpc-opt-out' });
  });

  it('a new signal counts for what an earlier grant took out of it', async () => {
    await api.write('grant', { principalId: 'nils', purposes: ['ads', PURPOSE], gpc: true });
    await Promise.all([
      api.write('grant', { principalId: 'nils', purposes: ['ads'], gpc: false }),
      api.write('withdraw', { principalId: 'nils', gpc: false }),
    ]);
    expect(await api.check('nils', 'ads')).toMatchObject({ allowed: true });
    expect(await api.check('nils')).toMatchObject({ reason: 'gpc-opt-out' });
    await api.write('withdraw', { principalId: 'nils', purposes: ['orders'], gpc: true });
    expect(await api.check('nils', 'ads')).toMatchObject({ allowed: false, reason: 'gpc-opt-out' });
  });

  it('holds for every purpose that heeds it, those never asked for included', async () => {
    await api.write('deny', { principalId: 'ida', purposes: ['ads'], gpc: true });
    expect(await api.check('ida', 'ads')).toMatchObject({ reason: 'gpc-opt-out' });
    expect(await api.check('ida')).toMatchObject({ reason: 'gpc-opt-out' });
    expect(await api.check('ida', 'orders')).toMatchObject({ reason: 'never-asked' });
  });

  it('a later withdrawal stands when the signal is gone', async () => {
    await api.write('grant', { principalId: 'jan', gpc: true });
    await api.write('grant', { principalId: 'jan', gpc: false });
    await api.write('withdraw', { principalId: 'jan' });
    expect(await api.check('jan')).toMatchObject({ allowed: false, reason: 'withdrawn' });
  });

  it('is kept for each person apart', async () => {
    await api.write('grant', { principalId: 'kai', gpc: true });
    await api.write('grant', { principalId: 'lea' });
    expect(await api.check('lea')).toMatchObject({ allowed: true });
  });
});

const body = (principalId: string) => ({ principalId, purposes: [PURPOSE] });

function send(key: string, fields: unknown, credential?: string, action: Action = 'grant'): Promise<Reply> {
  const inPage = credential === api.keys.publishable ? { origin: ORIGIN } : {};
  const headers = { 'idempotency-key': key, ...inPage };
  return api.post(`/v1/consent/${action}`, fields, credential, headers);
}

const logSize = async (): Promise<number> => (await api.check('nobody-at-all')).proof.seq + 1;

describe('Idempotency-Key', () => {
  it('the same body is answered the same, and written once', async () => {
    const first = await send('same', body('a'));
    const size = await logSize();
    const again = await send('same', body('a'));
    expect(first.status).toBe(201);
    expect({ status: again.status, text: again.text }).toEqual({ status: 201, text: first.text });
    expect(await logSize()).toBe(size);
  });

  it('a retry after a withdrawal does not grant again', async () => {
    const first = await send('stale-retry', body('b'));
    await api.write('withdraw', { principalId: 'b' });
    expect((await send('stale-retry', body('b'))).text).toBe(first.text);
    expect(await api.check('b')).toMatchObject({ allowed: false, reason: 'withdrawn' });
  });

  it('a retry after an erasure is refused, also with another body, and a new key grants anew', async () => {
    await send('before-erasure', body('gone'));
    const session = await api.session('gone');
    const erased = await api.post('/v1/principals/erase', {}, session);
    expect(erased.status).toBe(200);
    for (const retried of [body('gone'), { ...body('gone'), gpc: false }])
      expectError(await send('before-erasure', retried), 'erased');
    expect(await api.check('gone')).toMatchObject({ allowed: false, reason: 'erased' });
    const keyRows = await execute(api.gpd.dataDir, "SELECT * FROM idempotency_keys WHERE caller = 'erased'");
    expect(keyRows).toHaveLength(1);
    expect(JSON.stringify(keyRows)).not.toMatch(/before-erasure|key_/);
    expect((await send('after-erasure', body('gone'))).status).toBe(201);
    expectError(await send('before-erasure', body('gone')), 'erased');
    expect(await api.check('gone')).toMatchObject({ allowed: true });
  });

  it('the same values in another order of keys are the same body', async () => {
    const first = await send('order', '{"principalId":"c","purposes":["ads"],"gpc":false}');
    const again = await send('order', ' {"gpc":false, "purposes":["ads"], "principalId":"c"} ');
    expect({ status: again.status, text: again.text }).toEqual({ status: 201, text: first.text });
  });

  it.each<[string, object, Action]>([
    ['person', body('e'), 'grant'],
    ['purposes', { ...body('d'), purposes: ['ads'] }, 'grant'],
    ['word on GPC', { ...body('d'), gpc: false }, 'grant'],
    ['policy version', { ...body('d'), policyVersion: 0 }, 'grant'],
    ['action', body('d'), 'withdraw'],
  ])('another %s under it is 409, and nothing is written', async (change, other, action) => {
    expect((await send(`other ${change}`.replaceAll(' ', '-'), body('d'))).status).toBe(201);
    const size = await logSize();
    expectError(
      await send(`other ${change}`.replaceAll(' ', '-'), other, undefined, action),
      'idempotency-conflict',
    );
    expect(await logSize()).toBe(size);
  });

  it('belongs to one caller', async () => {
    const browser = { ...createBrowser(), purposes: [PURPOSE] };
    const session = await api.session('i');
    const replies = [
      await send('shared', body('i')),
      await send('shared', body('j'), api.keys.operator),
      await send('shared', body('k'), api.keys.foreign),
      await send('shared', browser, api.keys.publishable),
      await send('shared', body('i'), session),
    ];
    expect(replies.map(({ status }) => status)).toEqual(Array(5).fill(201));
    expect(new Set(replies.map(({ text }) => text)).size).toBe(5);
  });

  it('with a publishable key belongs to the browser: no stranger holds up a withdrawal by guessing it', async () => {
    const [visitor, stranger] = [createBrowser(), createBrowser()].map((one) => ({
      ...one,
      purposes: [PURPOSE],
    }));
    await send('order-4711', visitor, api.keys.publishable);
    for (const who of [stranger, visitor]) {
      const reply = await send('order-4711-withdraw', who, api.keys.publishable, 'withdraw');
      expect(reply.status).toBe(201);
      const again = await send('order-4711-withdraw', who, api.keys.publishable, 'withdraw');
      // A retry has the present state: the one from before may grant what was withdrawn since.
      const repeated = { ...(reply.json() as object), state: expect.any(String) };
      expect({ status: again.status, body: again.json() }).toEqual({ status: 201, body: repeated });
    }
    expect(await api.check(visitor?.principalId ?? '')).toMatchObject({ reason: 'withdrawn' });
    expectError(
      await send('order-4711', { ...visitor, gpc: true }, api.keys.publishable),
      'idempotency-conflict',
    );
  });

  it('stores no key as it was sent', async () => {
    const personalKey = 'order-erika@example.com';
    await send(personalKey, body('n'));
    const all = JSON.stringify(await execute(api.gpd.dataDir, 'SELECT * FROM idempotency_keys'));
    expect(all).not.toContain(personalKey);
  });

  it('is a new one after 24 hours', async () => {
    const before = Date.now();
    const first = await send('old', body('l'));
    const newest = 'rowid = (SELECT max(rowid) FROM idempotency_keys)';
    const [row] = await execute(api.gpd.dataDir, `SELECT expires_at FROM idempotency_keys WHERE ${newest}`);
    const storedAt = Number(row?.['expires_at']) - DAY_MS;
    expect(storedAt).toSatisfy((at: number) => at >= before && at <= Date.now());
    await execute(api.gpd.dataDir, `UPDATE idempotency_keys SET expires_at = 1 WHERE ${newest}`);
    const again = await send('old', { ...body('l'), gpc: false });
    expect(again.status).toBe(201);
    expect(again.text).not.toBe(first.text);
    expect((await send('old', { ...body('l'), gpc: false })).text).toBe(again.text);
  });

  it('is remembered for a write that was accepted only', async () => {
    expectError(await send('retried', { ...body('m'), purposes: ['nope'] }), 'unknown-purpose');
    expect((await send('retried', body('m'))).status).toBe(201);
  });

  it.each([
    ['255 visible characters', '~'.repeat(255), true],
    ['nothing', ''],
    ['256 characters', 'x'.repeat(256)],
    ['a space', 'a b'],
    ['Latin-1', 'caf\u00e9'],
  ])('%s: taken? %j', async (principalId, key, isTaken = false) => {
    const reply = await send(key, body(principalId));
    expect(reply.status).toBe(isTaken ? 201 : 400);
    expect(await api.check(principalId)).toMatchObject({ allowed: isTaken });
  });
});
