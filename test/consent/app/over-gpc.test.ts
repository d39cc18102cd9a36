import { beforeAll, describe, expect, it } from 'vitest';
import { KID, ORIGIN } from '../../support/constants.ts';
import { dumpDatabase, execute, executeSealed } from '../../support/database.ts';
import { expectCore, expectError, post, SEEN_WITHIN } from '../../support/expect.ts';
import { createBundle } from '../../support/seal.ts';
import type { SealTarget } from '../../support/server.ts';
import { started } from '../../support/started.ts';
import { createBrowser, PURPOSE, startApi, type Written } from './support/api.ts';

/** Contract-2 section 13: under the policy `ask` GPC presets no, and a yes to that purpose alone counts. */

const api = started(() =>
  startApi({
    purposes: [
      { id: 'news', gpc: 'ask' },
      { id: 'polls', gpc: 'ask' },
      { id: 'ads' },
      { id: 'orders', gpc: 'ignore' },
    ],
  }),
);

const OVER = { gpc: true, overGpc: true } as const;
const GRANT = '/v1/consent/grant';

const over = (principalId: string, purpose = 'news'): Promise<Written> =>
  api.write('grant', { principalId, purposes: [purpose], ...OVER });

describe('a grant under GPC', () => {
  it('that names no signal over it stays without effect; over it, it counts, and says so', async () => {
    await api.write('grant', { principalId: 'anna', purposes: ['news'], gpc: true });
    expect(await api.check('anna', 'news')).toMatchObject({ allowed: false, reason: 'gpc-opt-out' });
    const { seq, hash } = await over('anna');
    expect(await api.check('anna', 'news')).toMatchObject({
      allowed: true,
      reason: 'granted',
      proof: { seq, hash },
    });
    const events = await api.events('anna');
    expect(events).toMatchObject([{ seq, gpc: true, overGpc: true }, { gpc: true }]);
    expect(events[1]).not.toHaveProperty('overGpc');
    const receipt = (await api.get(`/v1/consent/receipts/${seq}`)).json();
    expect(receipt).toMatchObject({ receipt: { consent: { gpc: true, overGpc: true } } });
    const { problems } = JSON.parse((await api.gpd.cli(['consent', 'verify', KID, '--json'])).stdout) as {
      problems: { code: string }[];
    };
    // This test inserted the purposes by SQL, so they alone differ from the log.
    expect(new Set(problems.map(({ code }) => code))).toEqual(new Set(['purpose-changed']));
  });

  it('opts out of every other purpose that heeds the signal', async () => {
    await api.write('grant', { principalId: 'bea', purposes: ['ads', 'polls', 'orders'] });
    await over('bea');
    const reasons = await Promise.all(['news', 'polls', 'ads', 'orders'].map((id) => api.check('bea', id)));
    expect(reasons.map(({ reason }) => reason)).toEqual(['granted', 'gpc-opt-out', 'gpc-opt-out', 'granted']);
  });

  it('holds when the signal is told of again, and ends with a withdrawal at once', async () => {
    await over('carl');
    await api.write('deny', { principalId: 'carl', purposes: ['ads'], gpc: true });
    expect(await api.check('carl', 'news')).toMatchObject({ reason: 'granted' });
    await api.write('withdraw', { principalId: 'carl', purposes: ['news'] });
    expect(await api.check('carl', 'news')).toMatchObject({ allowed: false, reason: 'gpc-opt-out' });
    const plain = { principalId: 'carl', purposes: ['news'], gpc: true };
    for (const action of ['deny', 'grant'] as const) {
      await over('carl');
      await api.write(action, plain);
      expect(await api.check('carl', 'news')).toMatchObject({ allowed: false, reason: 'gpc-opt-out' });
    }
    const events = [{ type: 'consent.granted' }, { overGpc: true }, { type: 'consent.gpc-opt-out' }];
    expect((await api.events('carl')).slice(0, 3)).toMatchObject(events);
  });

  it('from a session and from a browser with its secret; not by an operator', async () => {
    const choice = { purposes: ['news'], ...OVER };
    const session = await api.session('dora');
    expect((await api.post(GRANT, { principalId: 'dora', ...choice }, session)).status).toBe(201);
    const browser = createBrowser();
    const page = { origin: ORIGIN, 'sec-gpc': '1' };
    expect((await api.post(GRANT, { ...browser, ...choice }, api.keys.publishable, page)).status).toBe(201);
    for (const id of ['dora', browser.principalId])
      expect(await api.check(id, 'news')).toMatchObject({ reason: 'granted' });
    const byOperator = await api.post(GRANT, { principalId: 'emil', ...choice }, api.keys.operator);
    expectError(byOperator, 'insufficient-scope');
  });

  it.each([
    ['opt-out', 'ads'],
    ['ignore', 'orders'],
    ['one that nobody defined', 'no-such-purpose'],
  ])('for a purpose of another policy is 422: %s', async (_policy, purpose) => {
    expectError(
      await api.post(GRANT, { principalId: 'fred', purposes: [purpose], ...OVER }),
      'unknown-purpose',
    );
  });

  it.each([
    ['two purposes at once', 'grant', { purposes: ['news', 'polls'], ...OVER }],
    ['no word of the signal', 'grant', { purposes: ['news'], overGpc: true }],
    ['no signal', 'grant', { purposes: ['news'], overGpc: true, gpc: false }],
    ['a withdrawal', 'withdraw', { purposes: ['news'], ...OVER }],
    ['a denial', 'deny', { purposes: ['news'], ...OVER }],
    ['two purposes of another policy, before 422', 'grant', { purposes: ['ads', 'orders'], ...OVER }],
  ])('with %s is 400', async (_why, action, body) => {
    expectError(await api.post(`/v1/consent/${action}`, { principalId: 'gerd', ...body }), 'invalid-request');
  });

  it('with overGpc: false is a grant like any other', async () => {
    await api.write('grant', { principalId: 'hans', purposes: ['news', 'ads'], overGpc: false });
    expect(await api.check('hans', 'news')).toMatchObject({ reason: 'granted' });
  });
});

describe('a bundle under GPC', () => {
  let target: SealTarget;
  beforeAll(async () => {
    const { publicKey } = (await api.get(`/_fp/pubkey?kid=${KID}`, '')).json() as { publicKey: string };
    target = { kid: KID, publicKey: Buffer.from(publicKey, 'base64') };
  });
  const visitWith = async (principalId: string, { seq, hash }: Written, purposes: string[]) =>
    post(
      api.gpd.url,
      createBundle(target, { consent: { purposes, gpc: true, principalId, proof: { seq, hash } } }),
    );

  it('is identified by a proven yes over the signal alone', async () => {
    await executeSealed(
      api.gpd.dataDir,
      `UPDATE purposes SET gpc = 'ask' WHERE id = '${PURPOSE}' AND kid = 'acme'`,
    );
    const asks = async () =>
      (await api.post(GRANT, { principalId: 'jan', purposes: [PURPOSE], ...OVER })).status;
    await expect.poll(asks, SEEN_WITHIN).toBe(201);
    const yes = await over('kim', PURPOSE);
    const { consentState } = expectCore(await visitWith('kim', yes, [PURPOSE, 'news', 'orders']), 'ok');
    // The ledger has no such grant of `news`.
    expect(consentState).toMatchObject({ gpc: true, purposes: ['orders', PURPOSE], basis: 'asserted' });
    const plain = await api.write('grant', { principalId: 'lea' });
    const refusal = expectCore(await visitWith('lea', plain, [PURPOSE, 'orders']), 'consent-missing');
    expect(refusal.consentState.purposes).toEqual(['orders']);
    expectCore(await visitWith('lea', yes, [PURPOSE]), 'consent-missing');
    expectCore(await visitWith('kim', { ...yes, hash: 'f'.repeat(64) }, [PURPOSE]), 'consent-missing');
    const bare = createBundle(target, { consent: { purposes: [PURPOSE], gpc: true } });
    expectCore(await post(api.gpd.url, bare), 'consent-missing');
    await api.write('withdraw', { principalId: 'kim' });
    expectCore(await visitWith('kim', yes, [PURPOSE]), 'consent-missing');
  });
});

it('GET /.well-known/gpc.json says that the signal is honoured, to everybody', async () => {
  const reply = await api.get('/.well-known/gpc.json', '', { origin: 'https://anywhere.example' });
  expect(reply.status).toBe(200);
  expect(reply.json()).toEqual({ gpc: true, lastUpdate: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) });
  expect(reply.headers['access-control-allow-origin']).toBe('*');
});

it('visits are counted by hour, with the part under the signal, and doctor tells of too large a part', async () => {
  const counted = await startApi();
  const { gpd, keys } = counted;
  const ask = async (headers: Record<string, string>) =>
    expect(
      (await counted.get('/v1/consent/banner', keys.publishable, { origin: ORIGIN, ...headers })).status,
    ).toBe(200);
  const line = async () => {
    const { checks } = JSON.parse((await gpd.cli(['doctor', '--json'])).stdout) as {
      checks: { id: string }[];
    };
    return checks.find(({ id }) => id === 'terms.gpc');
  };
  for (const signal of ['1', '0', '0', '0', '0']) await ask({ 'sec-gpc': signal });
  await counted.stop();
  const rows = (await dumpDatabase(gpd.dataDir))['tallies']?.map((row) => JSON.parse(row) as object);
  expect(rows).toMatchObject([
    { kid: KID, kind: 'visit', name: 'all', n: 5 },
    { kid: KID, kind: 'visit', name: 'gpc', n: 1 },
  ]);
  expect(await line()).toMatchObject({ status: 'pass' });
  await execute(gpd.dataDir, "UPDATE tallies SET n = 2 WHERE name = 'gpc'");
  expect(await line()).toMatchObject({ status: 'warn' });
  await gpd.json(['consent', 'purposes', 'set', KID, PURPOSE, '--title', 'Device', '--gpc', 'ask']);
  expect(await line()).toMatchObject({ status: 'pass' });
});
