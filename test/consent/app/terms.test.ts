import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { attestationPurpose } from '../../../src/tenants/purposes.ts';
import { KID } from '../../support/constants.ts';
import { expectError, SEEN_WITHIN } from '../../support/expect.ts';
import { ask, JSON_TYPE, type Reply } from '../../support/http.ts';
import { started } from '../../support/started.ts';
import { bearer, PURPOSE, startApi } from './support/api.ts';
import { readExport } from './support/naive-log.ts';

const PURPOSES = '/v1/consent/purposes';
const POLICIES = '/v1/consent/policies';

const SUBJECT = expect.stringMatching(/^[\w-]{43}$/) as unknown;

const api = started(() => startApi());

function put(body: unknown): Promise<Reply> {
  const headers = { ...JSON_TYPE, ...bearer(api.keys.operator) };
  return ask(api.gpd.url, PURPOSES, { method: 'PUT', headers, body: JSON.stringify(body) });
}
const publish = (text: string, material: boolean, at = api): Promise<Reply> =>
  at.post(POLICIES, { text, material }, at.keys.operator);

const entriesOfType = async (type: string, at = api): Promise<Record<string, unknown>[]> =>
  readExport(await at.get('/v1/ledger/export'))
    .map(({ entry }) => JSON.parse(entry) as Record<string, unknown>)
    .filter((entry) => entry['type'] === type);

describe('purposes', () => {
  const analytics = {
    id: 'analytics',
    title: 'Analytics',
    description: 'Counts visits.',
    lawfulBasis: 'consent',
    gpc: 'ignore',
    ttlDays: 30,
    banner: true,
  };

  it('is defined by an operator, published to everybody and recorded in the log', async () => {
    const reply = await put({ purposes: [analytics, { id: 'ads', title: 'Ads' }] });
    expect(reply.status).toBe(200);
    const rows = await api.gpd.json<object[]>(['audit', KID, '--action', 'purpose.defined']);
    const apiKey = expect.stringMatching(/^key_\w{26}$/) as unknown;
    expect(rows).toMatchObject([
      { role: 'operator', detail: { purpose: 'ads', apiKey } },
      { role: 'operator', detail: { purpose: 'analytics', apiKey } },
    ]);
    const { purposes } = (await api.get(PURPOSES, api.keys.publishable)).json() as { purposes: object[] };
    expect(purposes).toContainEqual(analytics);
    expect(purposes).toContainEqual(expect.objectContaining({ id: 'ads', gpc: 'opt-out', ttlDays: 180 }));
    const defined = await entriesOfType('purpose.defined');
    expect(defined.map(({ purpose }) => purpose)).toEqual([PURPOSE, 'analytics', 'ads']);
    expect(defined[1]).not.toHaveProperty('subject');
    // The entry of a purpose that the banner asks for says nothing of the banner.
    const { banner: _banner, ...body } = analytics;
    expect(defined[1]?.['body']).toEqual(body);
    await vi.waitFor(
      () => api.write('grant', { principalId: 'a', purposes: ['analytics', 'ads'], gpc: true }),
      SEEN_WITHIN,
    );
    expect(await api.check('a', 'analytics')).toMatchObject({ reason: 'granted' });
    expect(await api.check('a', 'ads')).toMatchObject({ reason: 'gpc-opt-out' });
  });

  it('is never asked in the banner with `banner: false`, which asks nobody again and changes no check', async () => {
    const id = 'counter';
    const fields = { id, title: 'Asked at the counter' };
    const askedIds = async () => {
      const reply = await api.get('/v1/consent/banner', api.keys.publishable);
      return (reply.json() as { purposes: { id: string }[] }).purposes.map((purpose) => purpose.id);
    };
    await put({ purposes: [fields] });
    expect(await askedIds()).toContain(id);
    await api.write('grant', { principalId: 'ann', purposes: [id] });
    const reply = await put({ purposes: [{ ...fields, banner: false }] });
    expect(reply.json()).toMatchObject({
      purposes: expect.arrayContaining([expect.objectContaining({ id, banner: false })]),
    });
    expect(await askedIds()).not.toContain(id);
    expect((await entriesOfType('purpose.defined')).at(-1)?.['body']).toMatchObject({ id, banner: false });
    expect(await api.check('ann', id)).toMatchObject({ allowed: true });
    await api.write('grant', { principalId: 'ben', purposes: [id] });
    expect(await api.check('ben', id)).toMatchObject({ allowed: true });
    expect((await api.post('/v1/consent/state', { principalId: 'ben' })).text).toContain(id);
    expect(await api.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
    await put({ purposes: [fields] });
    expect(await askedIds()).toContain(id);
    expect(await api.check('ann', id)).toMatchObject({ allowed: true });
    expect(await api.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
  });

  it('with gpd’s words is asked in each language of the banner: device identification and the passkey', async () => {
    const languages = readdirSync(new URL('../../../src/banner/locales', import.meta.url)).map(
      (name) => name.split('.', 1)[0] ?? '',
    );
    expect(languages).toHaveLength(25);
    const { id, title, description } = attestationPurpose;
    await put({ purposes: [{ id, title, description }] });
    const textsById = new Map<string, string[]>([
      [PURPOSE, []],
      [id, []],
    ]);
    for (const language of languages) {
      const reply = await api.get(`/v1/consent/banner?lang=${language}`, api.keys.publishable);
      const { purposes } = reply.json() as { purposes: { id: string; title: string; description: string }[] };
      for (const one of purposes) textsById.get(one.id)?.push(one.title, one.description);
    }
    for (const texts of textsById.values()) expect(new Set(texts).size).toBe(2 * languages.length);
  });

  it.each([
    ['no purposes', { purposes: [] }],
    ['a bad id', { purposes: [{ id: 'Ads', title: 'Ads' }] }],
    ['zero days', { purposes: [{ id: 'ads', title: 'Ads', ttlDays: 0 }] }],
    ['a title with half a character', { purposes: [{ id: 'ads', title: '\ud800' }] }],
    ['a title with NUL, which PostgreSQL cannot hold', { purposes: [{ id: 'ads', title: 'a\u0000' }] }],
  ])('%s: refused, and nothing is logged', async (_what, body) => {
    const before = await entriesOfType('purpose.defined');
    expectError(await put(body), 'invalid-request');
    expect(await entriesOfType('purpose.defined')).toEqual(before);
  });
});

describe('policies', () => {
  const waitForVersion = (version: number, at = api): Promise<void> =>
    vi.waitFor(
      async () => expect((await at.check('nobody-at-all')).policyVersion).toBe(version),
      SEEN_WITHIN,
    );

  it('are versions 1, 2, … with the SHA-256 of the exact text, in the log; a material one asks everybody again', async () => {
    const ownApi = await startApi();
    const text = 'Wir speichern wenig.\r\n  Zoë 🐢\n';
    const sha256 = createHash('sha256').update(text).digest('hex');
    const first = await publish(text, false, ownApi);
    expect(first.status).toBe(201);
    expect(first.json()).toMatchObject({ version: 1, sha256, material: false });
    const second = await publish(text, true, ownApi);
    expect(second.json()).toMatchObject({ version: 2, sha256, material: true });
    const { policies } = (await ownApi.get(POLICIES, ownApi.keys.publishable)).json() as {
      policies: object[];
    };
    expect(policies).toEqual([
      expect.objectContaining({ version: 1, sha256, material: false, text }),
      expect.objectContaining({ version: 2, sha256, material: true, text }),
    ]);
    const logged = await entriesOfType('policy.published', ownApi);
    expect(logged.map(({ body }) => body)).toEqual([
      { version: 1, sha256, material: false },
      { version: 2, sha256, material: true },
    ]);
    expect(logged[0]).toMatchObject({ purpose: null });

    await waitForVersion(2, ownApi);
    const { seq, hash } = await ownApi.write('grant', { principalId: 'lou' });
    expect(await ownApi.check('lou')).toMatchObject({ allowed: true, policyVersion: 2 });
    await publish('A comma more.', false, ownApi);
    await waitForVersion(3, ownApi);
    expect(await ownApi.check('lou')).toMatchObject({ allowed: true, policyVersion: 2 });
    await publish('We now sell everything.', true, ownApi);
    await waitForVersion(4, ownApi);
    expect(await ownApi.check('lou')).toEqual({
      allowed: false,
      reason: 'policy-outdated',
      proof: { seq, hash },
      policyVersion: 2,
      expiresAt: null,
      given: 'unknown',
      subject: SUBJECT,
    });
    await ownApi.write('grant', { principalId: 'lou' });
    expect(await ownApi.check('lou')).toMatchObject({ allowed: true, policyVersion: 4 });
    // A grant of an earlier text is recorded as that, and stays outdated.
    await ownApi.write('grant', { principalId: 'max', policyVersion: 3 });
    expect(await ownApi.check('max')).toMatchObject({ reason: 'policy-outdated', policyVersion: 3 });
    await ownApi.stop();
  });

  it('a grant of a version that is none, or that is over: 400', async () => {
    await publish('We keep little.', false);
    await waitForVersion(1);
    for (const policyVersion of [2, 0, -1, 2 ** 31]) {
      const body = { principalId: 'nils', purposes: [PURPOSE], policyVersion };
      expectError(await api.post('/v1/consent/grant', body), 'invalid-request');
    }
    expect(await api.check('nils')).toMatchObject({ reason: 'never-asked' });
  });

  it.each([
    ['no text', { text: '', material: true }],
    ['no word on whether it is material', { text: 'x' }],
    ['NUL, which PostgreSQL cannot hold', { text: 'a\u0000', material: false }],
    ['too much text', { text: 'x'.repeat(30_001), material: false }],
  ])('%s: refused', async (_what, body) => {
    expectError(await api.post(POLICIES, body, api.keys.operator), 'invalid-request');
  });
});
