import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KID } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { expectError } from '../../support/expect.ts';
import { ask } from '../../support/http.ts';
import { type Action, type Api, bearer, createBrowser, PURPOSE, startApi } from './support/api.ts';

/** A browser is joined with the account of the person who logs in there (contract-2 section 20). */

const SECOND_MS = 1000;
let now = Date.now();

let api: Api;
beforeAll(async () => {
  api = await startApi({ clock: () => now });
  const headers = { ...bearer(api.keys.operator), 'content-type': 'application/json' };
  const purposes = ['ads', 'orders'].map((id) => ({
    id,
    title: id,
    gpc: id === 'ads' ? 'opt-out' : 'ignore',
  }));
  const body = JSON.stringify({ purposes, material: true });
  const saved = await ask(api.gpd.url, '/v1/consent/purposes', { method: 'PUT', headers, body });
  expect(saved.status).toBe(200);
});
afterAll(() => api.stop());

type Browser = ReturnType<typeof createBrowser>;
let people = 0;
const newAccount = (): string => {
  people += 1;
  return `customer-${people}`;
};

const join = async (account: string, browser: Browser) =>
  api.post('/v1/principals/join', browser, await api.session(account));

async function joinedPair(): Promise<{ readonly account: string; readonly browser: Browser }> {
  const [account, browser] = [newAccount(), createBrowser()];
  expect((await join(account, browser)).status).toBe(201);
  return { account, browser };
}

/** The reference of a principal, as a check tells it to a backend. */
const refOf = async (principalId: string) => (await api.check(principalId)).subject ?? '';

const choose = (action: Action, principalId: string, fields: { gpc?: boolean; purposes?: string[] } = {}) =>
  api.write(action, { principalId, ...fields });

/** Entries of one second differ in nothing but the choice: what is to be newer comes in the next. */
const nextSecond = (): void => {
  now += SECOND_MS;
};

const reasons = async (...principals: string[]) =>
  Promise.all(principals.map(async (principal) => (await api.check(principal)).reason));

describe('POST /v1/principals/join', () => {
  it('answers 201 with when it was, and the same again 200', async () => {
    const { account, browser } = await joinedPair();
    const again = await join(account, browser);
    expect(again.status).toBe(200);
    const { joinedAt, ...answer } = again.json() as { joinedAt: string };
    expect(answer).toEqual({ principalId: account, joined: browser.principalId });
    expect(Date.parse(joinedAt)).toBe(now);
    expect(again.text).not.toContain(browser.principalSecret);
  });

  it('refuses a wrong secret, a browser of another account, a key and the session’s own principal', async () => {
    const { browser } = await joinedPair();
    const other = createBrowser();
    const guess = { principalId: other.principalId, principalSecret: browser.principalSecret };
    expectError(await join(newAccount(), guess), 'unauthenticated');
    expectError(await join(newAccount(), browser), 'claimed-by-another');
    expectError(await api.post('/v1/principals/join', other), 'insufficient-scope');
    expectError(await join(other.principalId, other), 'invalid-request');
  });

  it('refuses more browsers than a check should have to read', async () => {
    const { account } = await joinedPair();
    await execute(
      api.gpd.dataDir,
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        INSERT INTO consent_principals (kid, principal, gpc, account)
        SELECT '${KID}', 'crowd-' || i, 0, (SELECT account FROM consent_principals WHERE principal = '${await refOf(account)}') FROM n`,
    );
    expectError(await join(account, createBrowser()), 'invalid-request');
    await execute(api.gpd.dataDir, "DELETE FROM consent_principals WHERE principal LIKE 'crowd-%'");
  });

  it('says so in the log, which names nobody, and to webhooks', async () => {
    const { account } = await joinedPair();
    const lines = (await api.get('/v1/ledger/export')).text.trimEnd().split('\n');
    const entry = lines.map((line) => JSON.parse(line) as { entry: { type: string } }).at(-1);
    expect(JSON.stringify(entry)).toContain('subject.linked');
    expect(JSON.stringify(entry)).not.toContain(account);
  });
});

describe('of two that are joined', () => {
  it('the newest choice answers for both, whoever made it and whoever is asked', async () => {
    const { account, browser } = await joinedPair();
    const both = [account, browser.principalId];
    await choose('grant', browser.principalId);
    expect(await reasons(...both)).toEqual(['granted', 'granted']);
    nextSecond();
    const { seq, hash } = await choose('withdraw', account);
    expect(await reasons(...both)).toEqual(['withdrawn', 'withdrawn']);
    expect(await api.check(browser.principalId)).toMatchObject({ proof: { seq, hash } });
    nextSecond();
    await choose('grant', browser.principalId);
    expect(await reasons(...both)).toEqual(['granted', 'granted']);
  });

  it('a choice from before the join counts too', async () => {
    const [account, browser] = [newAccount(), createBrowser()];
    await choose('withdraw', account);
    nextSecond();
    await choose('grant', browser.principalId);
    await join(account, browser);
    expect(await reasons(account, browser.principalId)).toEqual(['granted', 'granted']);
  });

  it('a refusal wins within one second', async () => {
    const { account, browser } = await joinedPair();
    nextSecond();
    await choose('deny', account);
    await choose('grant', browser.principalId);
    expect(await reasons(account, browser.principalId)).toEqual(['denied', 'denied']);
  });

  it('a signal of one opts all out, until one of them agrees without it', async () => {
    const { account, browser } = await joinedPair();
    const phone = createBrowser();
    await join(account, phone);
    await choose('grant', account);
    const all = [account, browser.principalId, phone.principalId];
    expect(await reasons(...all)).toEqual(['granted', 'granted', 'granted']);
    nextSecond();
    await choose('deny', phone.principalId, { gpc: true });
    expect(await reasons(...all)).toEqual(['gpc-opt-out', 'gpc-opt-out', 'gpc-opt-out']);
    nextSecond();
    await choose('grant', browser.principalId, { gpc: false });
    expect(await reasons(...all)).toEqual(['granted', 'granted', 'granted']);
  });

  it('state, batch, history and export have both', async () => {
    const { account, browser } = await joinedPair();
    await choose('grant', browser.principalId, { purposes: ['ads'] });
    await choose('deny', account, { purposes: ['orders'] });
    for (const principalId of [account, browser.principalId]) {
      const state = (await api.post('/v1/consent/state', { principalId })).json() as { purposes: object[] };
      expect(state.purposes).toContainEqual(expect.objectContaining({ purpose: 'ads', choice: 'granted' }));
      expect(state.purposes).toContainEqual(expect.objectContaining({ purpose: 'orders', choice: 'denied' }));
      const events = await api.events(principalId);
      expect(events.map(({ type, purpose }) => `${type} ${purpose}`)).toEqual([
        'consent.denied orders',
        'consent.granted ads',
      ]);
      const checks = [{ id: '1', principalId, purpose: 'ads' }];
      const batch = await api.post('/v1/consent/can-process/batch', { checks });
      expect(batch.json()).toMatchObject({ results: [{ allowed: true }] });
    }
  });

  it('the account’s session reads the receipt of what the browser granted', async () => {
    const { account, browser } = await joinedPair();
    const { seq } = await choose('grant', browser.principalId);
    const receipt = await api.get(`/v1/consent/receipts/${seq}`, await api.session(account));
    expect(receipt.status).toBe(200);
  });
});

describe('an erasure', () => {
  const erase = async (principalId: string) =>
    expect((await api.post('/v1/principals/erase', {}, await api.session(principalId))).status).toBe(200);

  it('erases what is its own and ends the join', async () => {
    const { account, browser } = await joinedPair();
    await choose('grant', account, { purposes: [PURPOSE] });
    await choose('grant', browser.principalId, { purposes: ['ads'] });
    await erase(browser.principalId);
    expect(await reasons(account, browser.principalId)).toEqual(['granted', 'erased']);
    expect(await api.check(account, 'ads')).toMatchObject({ reason: 'never-asked' });
    expect((await api.events(account)).map(({ purpose }) => purpose)).toEqual([PURPOSE]);
    await choose('withdraw', account);
    await choose('grant', browser.principalId);
    expect(await reasons(account, browser.principalId)).toEqual(['withdrawn', 'granted']);
    expect((await join(newAccount(), browser)).status).toBe(201);
  });

  it('lets no refusal of the erased one lapse', async () => {
    const { account, browser } = await joinedPair();
    await choose('grant', account);
    nextSecond();
    await choose('withdraw', browser.principalId);
    await erase(browser.principalId);
    expect(await api.check(account)).toMatchObject({ allowed: false, reason: 'withdrawn' });
    await choose('grant', account);
    expect(await reasons(account)).toEqual(['granted']);
  });

  it('of the account ends all its joins, and no refusal lapses between its browsers', async () => {
    const { account, browser } = await joinedPair();
    const phone = createBrowser();
    await join(account, phone);
    await choose('grant', browser.principalId);
    nextSecond();
    await choose('withdraw', phone.principalId);
    await erase(account);
    expect(await reasons(account, browser.principalId, phone.principalId)).toEqual([
      'erased',
      'withdrawn',
      'withdrawn',
    ]);
  });

  it('of an account that was erased before and joined again is in the log as well, and ends that join', async () => {
    const { account } = await joinedPair();
    const erasures = async () =>
      (await api.get('/v1/ledger/export')).text.split('\n').filter((line) => line.includes('subject.erased'))
        .length;
    const before = await erasures();
    await erase(account);
    const browser = createBrowser();
    await join(account, browser);
    await choose('grant', browser.principalId);
    await erase(account);
    expect(await erasures()).toBe(before + 2);
    expect(await reasons(account, browser.principalId)).toEqual(['erased', 'granted']);
  });
});

it('the log verifies after all of it', async () => {
  const { account, browser } = await joinedPair();
  await choose('deny', browser.principalId, { gpc: true });
  await choose('grant', account, { gpc: false });
  expect(await api.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
});
