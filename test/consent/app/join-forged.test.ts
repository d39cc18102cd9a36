import { expect, it } from 'vitest';
import { execute } from '../../support/database.ts';
import { expectError } from '../../support/expect.ts';
import { started } from '../../support/started.ts';
import { createBrowser, PURPOSE, startApi } from './support/api.ts';

/** An erasure ends a join while one of those who are joined has a row that somebody wrote without the key. */

const SECOND_MS = 1000;
let now = Date.now();

const api = started(() =>
  startApi({ purposes: [{ id: 'ads' }, { id: 'orders', gpc: 'ignore' }], clock: () => now }),
);

let people = 0;

async function joinedPair() {
  people += 1;
  const [account, browser] = [`customer-${people}`, createBrowser()];
  const session = await api.session(account);
  expect((await api.post('/v1/principals/join', browser, session)).status).toBe(201);
  const refs = { account: await refOf(account), browser: await refOf(browser.principalId) };
  return { account, browser: browser.principalId, refs, session };
}

/** The reference of a principal, as a check tells it to a backend. */
const refOf = async (principalId: string) => (await api.check(principalId)).subject ?? '';

/** The account granted two purposes; then the browser withdrew one. */
async function withdrawnPair() {
  const pair = await joinedPair();
  await api.write('grant', { principalId: pair.account, purposes: [PURPOSE, 'ads'] });
  now += SECOND_MS;
  await api.write('withdraw', { principalId: pair.browser });
  return pair;
}

const forge = (table: 'consent_state' | 'consent_principals', ref: string, values: string) =>
  execute(api.gpd.dataDir, `UPDATE ${table} SET ${values} WHERE principal = '${ref}'`);

const erase = async (principalId: string) =>
  expect((await api.post('/v1/principals/erase', {}, await api.session(principalId))).status).toBe(200);

async function expectInvalid(principalId: string): Promise<void> {
  const reply = await api.post('/v1/consent/can-process', { principalId, purpose: PURPOSE });
  expectError(reply, 'unavailable');
}

it.each([
  ['a withdrawal that says granted', () => `choice = 'granted', expires_at = ${now + 1e9}`],
  ['a withdrawal that was set back', () => 'at = 1'],
  ['a withdrawal without its MAC', () => 'mac = NULL'],
])('%s stays refused, for its purpose alone and until a grant', async (_what, values) => {
  const { account, browser, refs } = await withdrawnPair();
  await forge('consent_state', refs.browser, values());
  await expectInvalid(account);
  await erase(browser);
  expect(await api.check(account)).toMatchObject({ allowed: false, reason: 'withdrawn' });
  expect(await api.check(account, 'ads')).toMatchObject({ reason: 'granted' });
  await api.write('grant', { principalId: account });
  expect(await api.check(account)).toMatchObject({ reason: 'granted' });
});

it('a grant that somebody hid while the other was erased stays refused when it comes back', async () => {
  const { account, browser, refs } = await withdrawnPair();
  // The row of the other purpose is a grant too, and comes back with it.
  await forge('consent_state', refs.account, "choice = 'denied'");
  await erase(browser);
  await forge('consent_state', refs.account, "choice = 'granted'");
  expect(await api.check(account)).toMatchObject({ reason: 'withdrawn' });
});

it('a person’s row that hides a signal ends neither the signal nor a refusal', async () => {
  const { account, browser, refs } = await withdrawnPair();
  await api.write('grant', { principalId: account, purposes: ['orders'] });
  await api.write('deny', { principalId: browser, gpc: true });
  await forge('consent_principals', refs.browser, 'gpc = 0');
  await erase(browser);
  expect(await api.check(account, 'ads')).toMatchObject({ reason: 'gpc-opt-out' });
  // This purpose heeds no signal.
  expect(await api.check(account, 'orders')).toMatchObject({ reason: 'withdrawn' });
  await api.write('grant', { principalId: account, purposes: ['ads', 'orders'], gpc: false });
  expect(await api.check(account, 'ads')).toMatchObject({ reason: 'granted' });
  expect(await api.check(account, 'orders')).toMatchObject({ reason: 'granted' });
});

it.each(['browser', 'account'] as const)(
  'a forged row of a third does not become valid with the erasure of the %s',
  async (leaver) => {
    const pair = await withdrawnPair();
    const phone = createBrowser();
    await api.post('/v1/principals/join', phone, pair.session);
    await api.write('grant', { principalId: phone.principalId });
    await api.write('deny', { principalId: phone.principalId, gpc: true });
    await forge('consent_principals', await refOf(phone.principalId), 'gpc = 0');
    await erase(pair[leaver]);
    await expectInvalid(phone.principalId);
  },
);

it('a choice does not end the join of a person whose row was forged: nobody’s refusal gets lost', async () => {
  const { account, browser, refs } = await withdrawnPair();
  await forge('consent_principals', refs.browser, 'gpc = 1');
  await expectInvalid(account);
  // The grant of another purpose by the account, then a withdrawal by the browser itself.
  await api.write('grant', { principalId: account, purposes: ['orders'] });
  await expectInvalid(account);
  now += SECOND_MS;
  await api.write('withdraw', { principalId: browser, purposes: ['orders'] });
  await expectInvalid(account);
  // With the row as gpd wrote it all is there.
  await forge('consent_principals', refs.browser, 'gpc = 0');
  for (const purpose of [PURPOSE, 'orders'])
    expect(await api.check(account, purpose)).toMatchObject({ allowed: false, reason: 'withdrawn' });
  expect(await api.check(account, 'ads')).toMatchObject({ reason: 'granted' });
});

it('a forged join shows nobody’s choices to another', async () => {
  const [mine, theirs] = [await joinedPair(), await joinedPair()];
  await api.write('grant', { principalId: theirs.account, purposes: ['ads'] });
  const { seq } = await api.write('grant', { principalId: theirs.browser, purposes: ['orders'] });
  await forge('consent_principals', mine.refs.account, `account = '${theirs.refs.account}'`);
  await forge('consent_principals', theirs.refs.browser, `account = '${mine.refs.account}'`);
  expect(await api.events(mine.account)).toEqual([]);
  expect((await api.events(theirs.account)).map(({ purpose }) => purpose)).toEqual(['ads']);
  expect((await api.get(`/v1/consent/receipts/${seq}`, mine.session)).status).toBe(403);
});

it('a forged browser of an account is not shown with it', async () => {
  const [mine, theirs] = [await joinedPair(), await joinedPair()];
  await api.write('grant', { principalId: theirs.browser, purposes: ['orders'] });
  await forge('consent_principals', theirs.refs.browser, `account = '${mine.refs.account}'`);
  expect(await api.events(mine.account)).toEqual([]);
});
