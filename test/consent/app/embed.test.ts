import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { get as getRaw, type IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { KID, ORIGIN } from '../../support/constants.ts';
import { expectError, SEEN_WITHIN } from '../../support/expect.ts';
import { ask, type Reply } from '../../support/http.ts';
import { startGpd } from '../../support/server.ts';
import { type Api, apiOf, PURPOSE, startApi } from './support/api.ts';
import { readExport } from './support/naive-log.ts';

const BANNER = '/v1/consent/banner';

interface Manifest {
  readonly version: string;
  readonly src: string;
  readonly integrity: string;
  readonly languages: readonly string[];
}

let api: Api;
let manifest: Manifest;
beforeAll(async () => {
  api = await startApi();
  manifest = (await ask(api.gpd.url, '/v1/embed.json')).json() as Manifest;
});
afterAll(() => api.stop());

const get = (path: string, headers = {}): Promise<Reply> => ask(api.gpd.url, path, { headers });
const banner = (query = '', headers = {}): Promise<Reply> =>
  api.get(`${BANNER}${query}`, api.keys.publishable, headers);

async function published(): Promise<{ body: Record<string, unknown> }[]> {
  return readExport(await api.get('/v1/ledger/export'))
    .map(({ entry }) => JSON.parse(entry) as { type: string; body: Record<string, unknown> })
    .filter(({ type }) => type === 'banner.published');
}

describe('the script', () => {
  it('is open to every origin, for five minutes', async () => {
    const reply = await get('/v1/embed.js');
    expect(reply.status).toBe(200);
    expect(reply.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=300',
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
      vary: 'Accept-Encoding',
    });
    const again = await get('/v1/embed.js', { 'if-none-match': reply.headers.etag ?? '' });
    expect([again.status, again.text]).toEqual([304, '']);
  });

  it('has an address whose bytes never change, and a hash that fits', async () => {
    const pinned = await get(manifest.src);
    expect(pinned.headers['cache-control']).toBe('public, max-age=31536000, immutable');
    const hash = createHash('sha384').update(pinned.text).digest('base64');
    expect(manifest.integrity).toBe(`sha384-${hash}`);
    expect(pinned.text).toContain(manifest.version);
  });

  it('names its extras, which never change either', async () => {
    const [address = ''] = /embed\/[0-9a-f]{16}\/extras\.js/.exec((await get('/v1/embed.js')).text) ?? [];
    const extras = await get(new URL(address, `${api.gpd.url}/v1/embed.js`).pathname);
    expect(extras.status).toBe(200);
    expect(extras.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      'access-control-allow-origin': '*',
    });
  });

  it.each(['embed.js', 'extras.js'])(
    '%s of another version is not found, because its bytes would differ',
    async (name) => {
      expectError(await get(`/v1/embed/0123456789abcdef/${name}`), 'not-found');
    },
  );

  it('goes out compressed to whoever takes that, under a tag of its own', async () => {
    const plain = await get('/v1/embed.js');
    const takesGzip = { agent: false, headers: { 'accept-encoding': 'gzip' } };
    const [zipped] = (await once(getRaw(`${api.gpd.url}/v1/embed.js`, takesGzip), 'response')) as [
      IncomingMessage,
    ];
    expect(zipped.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(Buffer.concat(await zipped.toArray())).toString()).toBe(plain.text);
    expect(zipped.headers.etag).not.toBe(plain.headers.etag);
    expect(plain.headers['content-encoding']).toBeUndefined();
  });

  it('has types, and takes nothing but GET', async () => {
    expect((await get('/v1/embed.d.ts')).text).toContain('interface GpdConsent');
    const agentTypes = await get('/v1/agent.d.ts');
    expect(agentTypes.text).toContain('export declare function identify(');
    expect(agentTypes.headers['content-type']).toBe('text/plain; charset=utf-8');
    const reply = await ask(api.gpd.url, '/v1/embed.js', { method: 'POST' });
    expectError(reply, 'method-not-allowed');
    expect(reply.headers.allow).toBe('GET, HEAD');
  });
});

describe('the languages', () => {
  it('are all official ones of the European Union, and one from right to left', () => {
    const official = 'bg cs da de el en es et fi fr ga hr hu it lt lv mt nl pl pt ro sk sl sv'.split(' ');
    expect(manifest.languages).toEqual([...official, 'ar'].sort());
  });

  it('come with the terms; English is in the script', async () => {
    expect((await banner('?lang=de')).json()).toMatchObject({
      words: { accept: 'Zustimmen', reject: 'Ablehnen' },
    });
    for (const query of ['', '?lang=en', '?lang=xx'])
      expect((await banner(query)).json()).not.toHaveProperty('words');
    expectError(await get(`/v1/embed/${manifest.version}/de.json`), 'not-found');
  });
});

describe('what the banner is told', () => {
  it('is the policy, the purposes and the tenant’s own words', async () => {
    const newApi = await startApi();
    const reply = await newApi.get(BANNER, newApi.keys.publishable, { origin: ORIGIN });
    await newApi.stop();
    expect(reply.status).toBe(200);
    expect(reply.headers['access-control-allow-origin']).toBe(ORIGIN);
    const texts = { title: expect.any(String) as unknown, description: expect.any(String) as unknown };
    const definition = { seq: 1, outdatedUntil: 0, optOutUntil: 0, askUntil: null };
    const purposes = [{ id: PURPOSE, ...texts, gpc: 'opt-out', ttlDays: 180, definition }];
    const policy = { version: 0, material: 0, url: '' };
    const words = { siteName: '', imprintUrl: '', title: '', body: '', purposes };
    expect(reply.json()).toEqual({ kid: KID, policy, ...words, gpc: false, refusalDays: 183 });
  });

  it('has the purpose that a tenant starts with in every language of the banner', async () => {
    const newApi = await startApi();
    const key = newApi.keys.publishable;
    const readTexts = async (language: string): Promise<string[]> => {
      const reply = (await newApi.get(`${BANNER}?lang=${language}`, key)).json() as {
        purposes: { title: string; description: string }[];
      };
      return reply.purposes.flatMap(({ title, description }) => [title, description]);
    };
    const all: string[] = [];
    for (const language of manifest.languages) all.push(...(await readTexts(language)));
    expect(new Set(all.filter((_text, at) => at % 2 === 1)).size).toBe(manifest.languages.length);
    const [german = ''] = await readTexts('de');
    expect(german).toBe('Geräteerkennung');
    const [shown] = await newApi.gpd.json<{ texts: string }[]>(['consent', 'banners', KID]);
    expect(shown?.texts).toContain(german);
    const texts = ['--title', 'Only us', '--description', 'Why.'];
    await newApi.gpd.json(['consent', 'purposes', 'set', KID, PURPOSE, ...texts]);
    await vi.waitFor(async () => expect(await readTexts('de')).toEqual(['Only us', 'Why.']), SEEN_WITHIN);
    await newApi.stop();
  });

  it('says when a header carries Global Privacy Control', async () => {
    expect((await banner('', { 'sec-gpc': '1' })).json()).toMatchObject({ gpc: true });
    expect((await banner('', { 'sec-gpc': '0' })).json()).toMatchObject({ gpc: false });
  });

  it('speaks the language that is asked for where the tenant does', async () => {
    const purposes = { [PURPOSE]: { title: 'Geräteerkennung', description: 'Warum.' } };
    const texts = { de: { title: 'Ihre Wahl', imprintUrl: 'https://shop.example/impressum', purposes } };
    const settings = [
      'banner.title=Your call',
      'banner.siteName=Lanterne',
      'banner.policyUrl=https://shop.example/privacy',
      'banner.imprintUrl=https://shop.example/imprint',
      `banner.texts=${JSON.stringify(texts)}`,
    ];
    await api.gpd.json(['tenants', 'set', KID, ...settings]);
    await vi.waitFor(async () => {
      expect((await banner('?lang=de')).json()).toMatchObject({
        siteName: 'Lanterne',
        imprintUrl: 'https://shop.example/impressum',
        title: 'Ihre Wahl',
        policy: { url: 'https://shop.example/privacy' },
        purposes: [{ title: 'Geräteerkennung', description: 'Warum.', ttlDays: 180 }],
      });
    }, SEEN_WITHIN);
    const english = (await banner()).json() as { title: string; purposes: { title: string }[] };
    expect(english).toMatchObject({ title: 'Your call', imprintUrl: 'https://shop.example/imprint' });
    expect(english.purposes[0]?.title).not.toBe('Geräteerkennung');
    expect((await banner('?lang=xx')).json()).toEqual(english);
    expect((await banner('?lang=constructor')).status).toBe(400);
  });

  it('says for how many days a refusal is remembered, as the tenant set it', async () => {
    await api.gpd.json(['tenants', 'set', KID, 'banner.refusalDays=30']);
    await vi.waitFor(
      async () => expect((await banner()).json()).toMatchObject({ refusalDays: 30 }),
      SEEN_WITHIN,
    );
  });

  it.each(['?lang=', '?lang=de&lang=en', '?lang=../x'])('%s: 400', async (query) => {
    expectError(await banner(query), 'invalid-request');
  });
});

describe('banner.published', () => {
  it('is in the log before anything is shown, once a change, as the texts that the operator keeps', async () => {
    expect((await banner()).status).toBe(200);
    const before = await published();
    await Promise.all(Array.from({ length: 8 }, () => banner('?lang=de')));
    expect(await published()).toEqual(before);
    const script = createHash('sha256')
      .update((await get('/v1/embed.js')).text)
      .digest('hex');
    expect(before.at(-1)?.body).toEqual({
      texts: expect.stringMatching(/^[0-9a-f]{64}$/),
      script,
      policyVersion: 0,
    });

    await api.gpd.json(['tenants', 'set', KID, 'banner.body=Please choose.']);
    await vi.waitFor(async () => {
      expect((await banner()).json()).toMatchObject({ body: 'Please choose.' });
    }, SEEN_WITHIN);
    await api.post('/v1/consent/policies', { text: 'We …', material: true }, api.keys.operator);
    await vi.waitFor(async () => {
      expect((await banner()).json()).toMatchObject({ policy: { version: 1, material: 1 } });
    }, SEEN_WITHIN);
    const after = await published();
    expect(after).toHaveLength(before.length + 2);
    expect(after.at(-1)?.body).toMatchObject({ policyVersion: 1 });

    const words = ['consent', 'banners', KID];
    const banners = await api.gpd.json<{ texts: string; textsSha256: string }[]>(words);
    expect(banners.map(({ textsSha256 }) => textsSha256).reverse()).toEqual(
      after.map(({ body }) => body['texts']),
    );
    for (const { texts, textsSha256 } of banners)
      expect(createHash('sha256').update(texts).digest('hex')).toBe(textsSha256);
    expect(banners[0]?.texts).toContain('Please choose.');
  });

  it('survives a restart without being said again', async () => {
    expect((await banner()).status).toBe(200);
    const before = await published();
    expect(before).not.toEqual([]);
    await api.gpd.stop();
    api = apiOf(await startGpd({ dataDir: api.gpd.dataDir }), api.keys);
    expect((await banner()).status).toBe(200);
    expect(await published()).toEqual(before);
    expect(await api.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
  });
});
