import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ORIGIN } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { expectError } from '../../support/expect.ts';
import type { Reply } from '../../support/http.ts';
import { type Action, type Api, createBrowser, PURPOSE, startApi } from './support/api.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi({ purposes: [{ id: 'ads' }] });
});
afterAll(() => api.stop());

const body = (principalId: string) => ({ principalId, purposes: [PURPOSE] });

function write(key: string, fields: unknown, credential?: string, action: Action = 'grant'): Promise<Reply> {
  const headers = { 'idempotency-key': key, origin: ORIGIN };
  return api.post(`/v1/consent/${action}`, fields, credential, headers);
}

const logSize = async (): Promise<number> => (await api.check('nobody-at-all')).proof.seq + 1;

describe('Idempotency-Key', () => {
  it('the same body is answered the same, and written once', async () => {
    const first = await write('same', body('a'));
    const size = await logSize();
    const again = await write('same', body('a'));
    expect(first.status).toBe(201);
    expect({ status: again.status, text: again.text }).toEqual({ status: 201, text: first.text });
    expect(await logSize()).toBe(size);
  });

  it('a retry after a withdrawal does not grant again', async () => {
    const first = await write('stale-retry', body('b'));
    await api.write('withdraw', { principalId: 'b' });
    expect((await write('stale-retry', body('b'))).text).toBe(first.text);
    expect(await api.check('b')).toMatchObject({ allowed: false, reason: 'withdrawn' });
  });

  it('a retry after an erasure is refused, also with another body, and a new key grants anew', async () => {
    await write('before-erasure', body('gone'));
    const session = await api.session('gone');
    const erased = await api.post('/v1/principals/erase', {}, session);
    expect(erased.status).toBe(200);
    for (const retried of [body('gone'), { ...body('gone'), gpc: false }])
      expectError(await write('before-erasure', retried), 'erased');
    expect(await api.check('gone')).toMatchObject({ allowed: false, reason: 'erased' });
    const keyRows = await execute(api.gpd.dataDir, "SELECT * FROM idempotency_keys WHERE caller = 'erased'");
    expect(keyRows).toHaveLength(1);
    expect(JSON.stringify(keyRows)).not.toMatch(/before-erasure|key_/);
    expect((await write('after-erasure', body('gone'))).status).toBe(201);
    expectError(await write('before-erasure', body('gone')), 'erased');
    expect(await api.check('gone')).toMatchObject({ allowed: true });
  });

  it('the same values in another order of keys are the same body', async () => {
    const first = await write('order', '{"principalId":"c","purposes":["ads"],"gpc":false}');
    const again = await write('order', ' {"gpc":false, "purposes":["ads"], "principalId":"c"} ');
    expect({ status: again.status, text: again.text }).toEqual({ status: 201, text: first.text });
  });

  it.each<[string, object, Action]>([
    ['person', body('e'), 'grant'],
    ['purposes', { ...body('d'), purposes: ['ads'] }, 'grant'],
    ['word on GPC', { ...body('d'), gpc: false }, 'grant'],
    ['policy version', { ...body('d'), policyVersion: 0 }, 'grant'],
    ['action', body('d'), 'withdraw'],
  ])('another %s under it is 409, and nothing is written', async (change, other, action) => {
    expect((await write(`other ${change}`.replaceAll(' ', '-'), body('d'))).status).toBe(201);
    const size = await logSize();
    expectError(
      await write(`other ${change}`.replaceAll(' ', '-'), other, undefined, action),
      'idempotency-conflict',
    );
    expect(await logSize()).toBe(size);
  });

  it('belongs to one caller', async () => {
    const browser = { ...createBrowser(), purposes: [PURPOSE] };
    const session = await api.session('i');
    const replies = [
      await write('shared', body('i')),
      await write('shared', body('j'), api.keys.operator),
      await write('shared', body('k'), api.keys.foreign),
      await write('shared', browser, api.keys.publishable),
      await write('shared', body('i'), session),
    ];
    expect(replies.map(({ status }) => status)).toEqual(Array(5).fill(201));
    expect(new Set(replies.map(({ text }) => text)).size).toBe(5);
  });

  it('stores no key as it was sent', async () => {
    const personalKey = 'order-erika@example.com';
    await write(personalKey, body('n'));
    const all = JSON.stringify(await execute(api.gpd.dataDir, 'SELECT * FROM idempotency_keys'));
    expect(all).not.toContain(personalKey);
  });

  it('is a new one after 24 hours', async () => {
    const first = await write('old', body('l'));
    const newest = 'rowid = (SELECT max(rowid) FROM idempotency_keys)';
    const [row] = await execute(api.gpd.dataDir, `SELECT expires_at FROM idempotency_keys WHERE ${newest}`);
    const remainingMs = Number(row?.['expires_at']) - Date.now();
    expect(remainingMs).toBeGreaterThan(86_400_000 - 60_000);
    expect(remainingMs).toBeLessThanOrEqual(86_400_000);
    await execute(api.gpd.dataDir, `UPDATE idempotency_keys SET expires_at = 1 WHERE ${newest}`);
    const again = await write('old', { ...body('l'), gpc: false });
    expect(again.status).toBe(201);
    expect(again.text).not.toBe(first.text);
    expect((await write('old', { ...body('l'), gpc: false })).text).toBe(again.text);
  });

  it('is remembered for a write that was accepted only', async () => {
    expectError(await write('retried', { ...body('m'), purposes: ['nope'] }), 'unknown-purpose');
    expect((await write('retried', body('m'))).status).toBe(201);
  });

  it.each([
    ['255 visible characters', '~'.repeat(255), true],
    ['nothing', ''],
    ['256 characters', 'x'.repeat(256)],
    ['a space', 'a b'],
    ['Latin-1', 'caf\u00e9'],
  ])('%s: taken? %j', async (principalId, key, isTaken = false) => {
    const reply = await write(key, body(principalId));
    expect(reply.status).toBe(isTaken ? 201 : 400);
    expect(await api.check(principalId)).toMatchObject({ allowed: isTaken });
  });
});
