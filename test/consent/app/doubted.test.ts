import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import type { VisitorClass } from '../../../src/schema/responses.ts';
import { AGENT_ORIGIN, createAgent, signedHeaders } from '../../agents/support/agent.ts';
import { PERIOD, unpackParts } from '../../rights/evidence/support.ts';
import { apiKey, startRights } from '../../rights/support/rights.ts';
import { tempDir } from '../../support/command.ts';
import { KID, ORIGIN, REASON } from '../../support/constants.ts';
import { expectCore, post, SEEN_WITHIN, sessionOf } from '../../support/expect.ts';
import { desktopChrome, headlessChrome } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import { started } from '../../support/started.ts';
import { type Api, apiOf, PURPOSE, type Written } from './support/api.ts';

/** Contract-2 section 18: a verdict says of the grant that it rode on who gave it. */

const GRANT = '/v1/consent/grant';
const agent = createAgent();

const rights = started(() => startRights());
let api: Api;
beforeAll(async () => {
  api = apiOf(rights.gpd, { secret: await apiKey(rights, 'secret') } as Api['keys']);
  const file = join(tempDir('jwks'), 'keys.json');
  writeFileSync(file, JSON.stringify({ keys: [agent.jwk] }));
  await rights.gpd.json(['agents', 'add', AGENT_ORIGIN, '--jwks', file]);
  await rights.gpd.json(['consent', 'purposes', 'set', KID, 'news', '--title', 'News', '--gpc', 'ignore']);
});

async function grant(principalId: string, headers = {}, purposes = [PURPOSE]): Promise<Written> {
  const reply = await api.post(GRANT, { principalId, purposes }, undefined, headers);
  expect({ status: reply.status, text: reply.text }).toMatchObject({ status: 201 });
  return reply.json() as Written;
}
const check = (principalId: string, purpose?: string) => api.check(principalId, purpose);
/** The consent in a receipt, as the log's key signed it. */
async function receiptOf(seq: number) {
  const reply = await api.get(`/v1/consent/receipts/${seq}`);
  const { receipt, jws } = reply.json() as { receipt: { consent: object }; jws: string };
  expect(JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString())).toEqual(receipt);
  return receipt.consent;
}
const doubtsOf = async (principalId: string) =>
  (await api.events(principalId)).filter(({ type }) => type === 'consent.doubted');

function signed(target: string): Record<string, string> {
  const now = Math.floor(Date.now() / 1000);
  const params = { created: String(now), expires: String(now + 60) };
  return signedHeaders(agent, { host: `127.0.0.1:${rights.gpd.port}`, scheme: 'http', target, params });
}

interface Ride {
  readonly bot?: boolean;
  /** Nothing that only a program has: no pointing device, and no `window.chrome`. */
  readonly odd?: boolean;
  /** Values that replace those of a group of signals. */
  readonly signals?: Readonly<Record<string, object>>;
  readonly device?: string;
  readonly headers?: Record<string, string>;
  readonly proof?: { readonly seq: number; readonly hash: string };
}

/** A visit whose bundle names this grant. */
async function ride(principalId: string, { seq, hash }: Written, over: Ride = {}) {
  const proof = over.proof ?? { seq, hash };
  const signals = over.bot ? headlessChrome(over.device) : desktopChrome(over.device);
  if (over.odd) {
    Object.assign(signals.media, { pointer: 'none', hover: false });
    Object.assign(signals.page, { chromeObject: false });
  }
  for (const [group, values] of Object.entries(over.signals ?? {}))
    Object.assign((signals as unknown as Record<string, object>)[group] ?? {}, values);
  const bundle = createBundle(rights.acme, { signals, consent: { principalId, proof } });
  return expectCore(await post(rights.gpd.url, bundle, { origin: ORIGIN, ...over.headers }), 'ok');
}

async function setDoubtPolicy(value: 'note' | 'ask-again' | 'deny', principalId: string): Promise<void> {
  await rights.gpd.json(['tenants', 'set', KID, `consent.byAutomation=${value}`]);
  const allowed = value !== 'deny';
  await vi.waitFor(async () => expect(await check(principalId)).toMatchObject({ allowed }), SEEN_WITHIN);
}

describe('a grant', () => {
  it('that no verdict carried has an unknown giver', async () => {
    await grant('alf');
    expect(await check('alf')).toMatchObject({ allowed: true, given: 'unknown' });
    expect(await check('nobody')).toMatchObject({ reason: 'never-asked', given: 'unknown' });
  });

  it.each<[VisitorClass, string, Ride]>([
    ['human', 'person', {}],
    ['undeclared_automation', 'automation', { bot: true }],
    ['declared_agent', 'agent', { headers: {} }],
  ])('that a verdict %s carried was given by: %s', async (by, givenBy, over) => {
    const headers = over.headers && signed('/_fp/i/v1');
    const granted = await grant(`by ${givenBy}`, {}, [PURPOSE, 'news']);
    const [first] = granted.entries;
    const ownGrant = { ...granted, ...first };
    expect((await ride(`by ${givenBy}`, ownGrant, { ...over, ...(headers && { headers }) })).class).toBe(by);
    // One press granted both.
    for (const purpose of [PURPOSE, 'news'])
      expect(await check(`by ${givenBy}`, purpose)).toMatchObject({ allowed: true, given: givenBy });
    const doubts = givenBy === 'person' ? [] : ['news', PURPOSE];
    const doubted = await doubtsOf(`by ${givenBy}`);
    expect(doubted.map(({ purpose }) => purpose).sort()).toEqual(doubts.sort());
    for (const doubt of doubted)
      expect(doubt).toMatchObject({ class: by, source: 'ingest', policyVersion: null, expiresAt: null });
    const state = await api.post('/v1/consent/state', { principalId: `by ${givenBy}` });
    const { purposes } = state.json() as { purposes: object[] };
    expect(purposes).toContainEqual(expect.objectContaining({ purpose: PURPOSE, given: givenBy }));
    expect(await receiptOf(ownGrant.seq)).toMatchObject({ status: 'granted', given: givenBy });
    // The document for the person says what the log says, and their page does not say that they agreed.
    const session = await api.session(`by ${givenBy}`);
    const listed = await api.post('/v1/consent/receipts', { principalId: `by ${givenBy}` }, session);
    const { '@graph': graph } = listed.json() as { '@graph': { given?: string }[] };
    const byProgram = givenBy === 'person' ? undefined : givenBy;
    expect(graph.map(({ given }) => given)).toEqual([byProgram, byProgram]);
    const accept = { accept: 'text/html' };
    const page = await api.post('/v1/consent/receipts', { principalId: `by ${givenBy}` }, session, accept);
    expect(page.text).toContain(byProgram ? 'It looked as if a program did so.' : 'You agreed on');
    // A later choice does not change who gave this one, as far as the log says.
    await api.write('withdraw', { principalId: `by ${givenBy}`, purposes: [PURPOSE] });
    expect(await receiptOf(ownGrant.seq)).toMatchObject({ given: byProgram ?? 'unknown' });
  });

  it('is doubted once, and a person who comes later does not hide it', async () => {
    const granted = await grant('bea');
    await ride('bea', granted);
    expect(await check('bea')).toMatchObject({ given: 'person' });
    await ride('bea', granted, { bot: true });
    await ride('bea', granted, { bot: true });
    await ride('bea', granted);
    expect(await check('bea')).toMatchObject({ given: 'automation' });
    expect(await doubtsOf('bea')).toHaveLength(1);
  });

  it('has in its receipt the doubt about itself, not about a later one', async () => {
    const earlier = await grant('bob');
    const later = await grant('bob');
    await ride('bob', later, { bot: true });
    expect(await receiptOf(earlier.seq)).toMatchObject({ given: 'unknown' });
    expect(await receiptOf(later.seq)).toMatchObject({ given: 'automation' });
    const file = join(tempDir('evidence'), 'bob.zip');
    await rights.gpd.json(['evidence', KID, ...PERIOD, '--principal', 'bob', '--out', file]);
    const documents = [...unpackParts(file).parts].filter(([name]) => name.startsWith('receipts/'));
    const graph = documents.flatMap(
      ([, bytes]) => (JSON.parse(bytes.toString()) as { '@graph': { given?: string }[] })['@graph'],
    );
    expect(graph.map(({ given }) => given)).toEqual([undefined, 'automation']);
  });

  it('has no receipt while its doubt is one that the log does not commit to', async () => {
    const granted = await grant('bill');
    await ride('bill', granted, { bot: true });
    await api.write('withdraw', { principalId: 'bill' });
    expect(await receiptOf(granted.seq)).toMatchObject({ given: 'automation' });
    const [doubt] = await doubtsOf('bill');
    const replace = (before: string, after: string) =>
      rights.sql(
        `UPDATE consent_openings SET detail = replace(detail, '${before}', '${after}') WHERE seq = ${doubt?.seq}`,
      );
    await replace('undeclared_automation', 'human');
    expect((await api.get(`/v1/consent/receipts/${granted.seq}`)).status).toBe(503);
    await replace('human', 'undeclared_automation');
    expect(await receiptOf(granted.seq)).toMatchObject({ given: 'automation' });
  });

  it('has no giver in a receipt whose state somebody forged in the database', async () => {
    const { seq } = await grant('ben');
    await rights.sql(`UPDATE consent_state SET given = 'person' WHERE seq = ${seq}`);
    expect(await receiptOf(seq)).toMatchObject({ given: 'unknown' });
  });

  it('has the giver of its state in a receipt, whatever doubt somebody wrote into the database', async () => {
    const granted = await grant('benno');
    await ride('benno', granted);
    await rights.sql(`INSERT INTO consent_openings (kid, seq, principal, purpose, choice, at, salt, detail)
      SELECT kid, 900000, principal, purpose, 'doubted', at, salt, '{"class":"undeclared_automation","source":"ingest"}'
      FROM consent_openings WHERE seq = ${granted.seq}`);
    expect(await receiptOf(granted.seq)).toMatchObject({ given: 'person' });
    await rights.sql('DELETE FROM consent_openings WHERE seq = 900000');
  });

  it('is not doubted for oddities that people have too, whatever the class', async () => {
    const granted = await grant('bert');
    expect((await ride('bert', granted, { odd: true })).class).toBe('undeclared_automation');
    expect(await check('bert')).toMatchObject({ allowed: true, given: 'unknown' });
    await ride('bert', granted);
    await ride('bert', granted, { odd: true });
    expect(await check('bert')).toMatchObject({ given: 'person' });
    expect(await doubtsOf('bert')).toEqual([]);
  });

  const noPointer = { pointer: 'none', hover: false };
  const shrunk = { width: 1280, height: 720, outerWidth: 1800, outerHeight: 900 };
  const page = { width: 1177, height: 837, innerWidth: 1177, innerHeight: 837 };
  const toolbar = { ...page, outerWidth: 1780, outerHeight: 1000 };
  const anotherPlatform = { 'sec-ch-ua-platform': '"Amiga"' };
  it.each<[string, Ride]>([
    ['on a remote desktop that was made smaller', { signals: { media: noPointer, screen: shrunk } }],
    ['who use the device toolbar', { signals: { tells: { cdp: true }, screen: toolbar } }],
    ['who edit headers on a remote desktop', { signals: { media: noPointer }, headers: anotherPlatform }],
    [
      'who edit headers, with developer tools',
      { signals: { tells: { cdp: true } }, headers: anotherPlatform },
    ],
  ])('of people %s is not doubted', async (who, over) => {
    const granted = await grant(who);
    expect((await ride(who, granted, over)).class).toBe('unknown');
    expect(await check(who)).toMatchObject({ allowed: true, given: 'unknown' });
    expect(await doubtsOf(who)).toEqual([]);
  });

  it('is not marked by a bundle that names another proof, or an event that is not the last', async () => {
    const first = await grant('carl');
    const otherGrant = await grant('not carl');
    await ride('carl', otherGrant, { bot: true });
    await ride('carl', { ...first, hash: '0'.repeat(64) }, { bot: true });
    const again = await grant('carl');
    await ride('carl', first, { bot: true });
    expect(await check('carl')).toMatchObject({ given: 'unknown', proof: { seq: again.seq } });
    expect(await doubtsOf('carl')).toEqual([]);
  });

  it('that an agent signed names it, and is the agent’s', async () => {
    await grant('dora', signed(GRANT));
    const [event] = await api.events('dora');
    expect(event).toMatchObject({ type: 'consent.granted', source: `agent:${AGENT_ORIGIN}` });
    expect(await check('dora')).toMatchObject({ given: 'agent' });
    expect(await doubtsOf('dora')).toEqual([]);
  });

  it('with a signature that does not verify is as one without', async () => {
    const { signature: _lost, ...partly } = signed(GRANT);
    const forged = { ...signed(GRANT), signature: `sig1=:${Buffer.alloc(64).toString('base64')}:` };
    for (const headers of [partly, forged]) {
      await grant('emil', headers);
      expect((await api.events('emil'))[0]).toMatchObject({ source: 'backend' });
      expect(await check('emil')).toMatchObject({ given: 'unknown' });
    }
  });

  it('that is new counts by itself; a withdrawal ends both', async () => {
    await ride('fred', await grant('fred'), { bot: true });
    await api.write('withdraw', { principalId: 'fred' });
    expect(await check('fred')).toMatchObject({ allowed: false, reason: 'withdrawn', given: 'unknown' });
    await grant('fred');
    expect(await check('fred')).toMatchObject({ allowed: true, given: 'unknown' });
  });
});

describe('consent.byAutomation', () => {
  it('deny answers a doubted grant `doubted`; note allows it again', async () => {
    await ride('gerd', await grant('gerd'), { bot: true });
    await grant('greta');
    await setDoubtPolicy('deny', 'gerd');
    expect(await check('gerd')).toMatchObject({ allowed: false, reason: 'doubted', given: 'automation' });
    expect(await check('greta')).toMatchObject({ allowed: true, given: 'unknown' });
    const checks = [{ id: '1', principalId: 'gerd', purpose: PURPOSE }];
    expect((await api.post('/v1/consent/can-process/batch', { checks })).json()).toMatchObject({
      results: [{ id: '1', reason: 'doubted', given: 'automation' }],
    });
    await setDoubtPolicy('note', 'gerd');
    expect(await check('gerd')).toMatchObject({ allowed: true, given: 'automation' });
  });

  it('ask-again tells the next visit that looks like a person, and no other', async () => {
    const granted = await grant('hans');
    expect(await ride('hans', granted, { bot: true })).not.toHaveProperty('askAgain');
    expect(await ride('hans', granted)).not.toHaveProperty('askAgain');
    await rights.gpd.json(['tenants', 'set', KID, 'consent.byAutomation=ask-again']);
    await vi.waitFor(async () => expect((await ride('hans', granted)).askAgain).toBe(true), SEEN_WITHIN);
    expect(await ride('hans', granted, { bot: true })).not.toHaveProperty('askAgain');
    expect(await ride('hans', await grant('hans'))).not.toHaveProperty('askAgain');
    await setDoubtPolicy('note', 'hans');
  });
});

describe('a contest', () => {
  it('that is overturned clears the doubt of the grant that its visit carried, with an entry', async () => {
    const device = 'd'.repeat(32);
    const granted = await grant('ida');
    await ride('ida', granted, { bot: true });
    const { requestId, visitorId } = await ride('ida', granted, { bot: true, device });
    const subject = await rights.as({ gpd_role: 'subject', sub: 'ida', gpd_visitor: visitorId });
    const filed = await rights.call('/privacy/contest', { requestId }, subject);
    const { contestId } = filed.json() as { contestId: string };
    const ruling = { contestId, outcome: 'overturned', reason: REASON };
    const reviewer = await rights.as({ gpd_role: 'reviewer', sub: 'rita' });
    expect((await rights.call('/privacy/contest/resolve', ruling, reviewer)).status).toBe(200);
    expect(await check('ida')).toMatchObject({ given: 'person' });
    expect((await doubtsOf('ida')).map(({ class: by, source }) => [by, source])).toEqual([
      ['human', 'contest'],
      ['undeclared_automation', 'ingest'],
    ]);
    await ride('ida', granted, { bot: true });
    expect(await check('ida')).toMatchObject({ given: 'person' });
    expect(await receiptOf(granted.seq)).toMatchObject({ given: 'person' });
  });
});

it('gpd consent verify holds the doubts against the log', async () => {
  const verify = async () => {
    const { stdout } = await rights.gpd.cli(['consent', 'verify', KID, '--json']);
    return JSON.parse(stdout) as { ok: boolean; problems: readonly { code: string; what: string }[] };
  };
  expect(await verify()).toMatchObject({ ok: true, problems: [] });
  // A writer of the database kept the row, with its MAC, from before the doubt.
  const granted = await grant('jan');
  const [before] = await rights.sql(
    `SELECT given, doubt_seq, mac FROM consent_state WHERE seq = ${granted.seq}`,
  );
  await ride('jan', granted, { bot: true });
  const sql = `UPDATE consent_state SET given = NULL, doubt_seq = NULL, mac = '${String(before?.['mac'])}'`;
  await rights.sql(`${sql} WHERE seq = ${granted.seq}`);
  const { ok, problems } = await verify();
  expect(ok).toBe(false);
  expect(problems).toEqual([
    { code: 'state-changed', what: expect.stringContaining('does not include entry'), seq: granted.seq + 1 },
  ]);
});

it('an erasure destroys what opens a doubt, and an export tells it', async () => {
  const granted = await grant('kim');
  const consent = { principalId: 'kim', proof: { seq: granted.seq, hash: granted.hash } };
  const visit = await post(
    rights.gpd.url,
    createBundle(rights.acme, { signals: headlessChrome(), consent }),
    { origin: ORIGIN },
  );
  const { transparencyToken: token } = expectCore(visit, 'ok');
  const session = await api.session('kim');
  const browser = { cookie: `gp_session=${sessionOf(visit)}`, origin: ORIGIN };
  expect((await rights.call('/v1/principals/link', { token }, session, browser)).status).toBe(201);
  const subject = await rights.as({ gpd_role: 'subject', sub: 'kim' });
  const dsar = (await rights.call('/privacy/dsar', {}, subject)).json();
  expect(dsar).toMatchObject({
    consent: {
      state: [{ purpose: PURPOSE, given: 'automation' }],
      history: [{ type: 'consent.doubted', class: 'undeclared_automation' }, { type: 'consent.granted' }],
    },
  });
  expect(JSON.stringify(dsar)).not.toContain('principal_id');
  const opened = () => rights.sql(`SELECT 1 FROM consent_openings WHERE seq = ${granted.seq + 1}`);
  expect(await opened()).toHaveLength(1);
  const dpo = await rights.as({ gpd_role: 'dpo', sub: 'olga' });
  expect((await rights.call('/privacy/erase', { principalId: 'kim' }, dpo)).status).toBe(200);
  expect(await opened()).toEqual([]);
  expect(await check('kim')).toMatchObject({ reason: 'erased', given: 'unknown' });
});
