import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { KID, ORIGIN } from '../../support/constants.ts';
import { expectError, SEEN_WITHIN } from '../../support/expect.ts';
import type { Reply } from '../../support/http.ts';
import { type Api, PURPOSE, startApi } from './support/api.ts';
import { readExport } from './support/naive-log.ts';

/** The banner as markup, which a page's server writes into its pages. */

const MARKUP = '/v1/consent/banner.html';
let api: Api;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

const markup = (query = '', headers = {}, key = api.keys.publishable): Promise<Reply> =>
  api.get(`${MARKUP}${query}`, key, headers);

/** The terms, as the script reads them. */
function termsIn({ text }: Reply) {
  const [, json = ''] = /<script type="application\/json">(.*?)<\/script>/s.exec(text) ?? [];
  return JSON.parse(json) as { language: string; config: unknown };
}

describe('GET /v1/consent/banner.html', () => {
  it('is the element in a declarative shadow root, with the terms and words that the script needs', async () => {
    const reply = await markup('?lang=de');
    expect(reply.status).toBe(200);
    expect(reply.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(reply.text).toMatch(
      /^<gpd-consent [^>]*lang="de" dir="ltr" popover="manual"><template shadowrootmode="open"><style>/,
    );
    expect(reply.text).toMatch(/<\/template><script type="application\/json">.*<\/script><\/gpd-consent>$/s);
    expect(reply.text).toContain('>Ablehnen</button>');
    const terms = termsIn(reply);
    const json = await api.get('/v1/consent/banner?lang=de', api.keys.publishable);
    expect(terms.config).toEqual(json.json());
  });

  it('has its address for every language and theme, and a language that the banner lacks is English', async () => {
    expect((await markup('?lang=ar')).text).toContain('lang="ar" dir="rtl"');
    expect((await markup('?lang=xx')).text).toBe((await markup()).text);
    expect((await markup('?theme=dark')).text).toContain('data-theme="dark"');
  });

  it.each([
    ['?lang=', 'lang: '],
    ['?lang=de&lang=en', 'lang: '],
    ['?theme=blue', 'theme: '],
    ['?nonce=a%22%3E', 'nonce: '],
    [`?nonce=${'a'.repeat(129)}`, 'nonce: '],
  ])('%s: 400 names the parameter', async (query, detail) => {
    const reply = await markup(query);
    expectError(reply, 'invalid-request');
    expect((reply.json() as { details: string[] }).details[0]).toContain(detail);
  });

  it('carries the nonce of the page’s policy, and no style but that one', async () => {
    const { text } = await markup('?nonce=bm9uY2U=');
    expect(text.match(/<style[^>]*>/g)).toEqual(['<style nonce="bm9uY2U=">']);
    expect(text).not.toMatch(/ (?:style|on\w+)="/);
  });

  it('is kept for a minute by the page’s server, and asked for with its tag', async () => {
    const { headers } = await markup();
    expect(headers).toMatchObject({
      'cache-control': 'private, max-age=60',
      vary: 'Sec-GPC, Origin',
      etag: expect.stringMatching(/^"[\w-]{43}"$/),
    });
    const again = await markup('', { 'if-none-match': `W/${headers.etag}` });
    expect([again.status, again.text, again.headers.etag]).toEqual([304, '', headers.etag]);
    expect((await markup('?lang=de', { 'if-none-match': headers.etag ?? '' })).status).toBe(200);
  });

  it('lets in what may read the JSON', async () => {
    for (const key of [api.keys.publishable, api.keys.secret, api.keys['read-only'], api.keys.operator])
      expect((await markup('', {}, key)).status).toBe(200);
    expectError(await markup('', {}, ''), 'unauthenticated');
    expectError(await markup('', {}, api.keys.revoked), 'unauthenticated');
    expectError(await markup('', { origin: ORIGIN }, api.keys.secret), 'secret-key-in-page');
    expect((await markup('', { origin: ORIGIN })).headers['access-control-allow-origin']).toBe(ORIGIN);
  });

  it('has the terms alone where Global Privacy Control has answered', async () => {
    const reply = await markup('', { 'sec-gpc': '1' });
    expect(reply.text).not.toContain('<template');
    expect(termsIn(reply).config).toMatchObject({ gpc: true });
  });

  it('shows a tenant’s words as text, also those that look like markup', async () => {
    const shop = await startApi();
    const words = '</script><img src=x onerror=alert(1)> & "quoted" </template>';
    await shop.gpd.json(['tenants', 'set', KID, `banner.title=${words}`]);
    await shop.gpd.json([
      'consent',
      'purposes',
      'set',
      KID,
      PURPOSE,
      '--title',
      words,
      '--description',
      'Why.',
    ]);
    await vi.waitFor(async () => {
      const reply = await shop.get(MARKUP, shop.keys.publishable);
      expect(termsIn(reply).config).toMatchObject({ title: words, purposes: [{ title: words }] });
      expect(reply.text).not.toContain('<img');
      expect(reply.text.match(/<\/(?:script|template)>/g)).toEqual(['</template>', '</script>']);
      expect(reply.text).toContain('&#60;img src=x onerror=alert(1)&#62; &#38; &#34;quoted&#34;');
    }, SEEN_WITHIN);
    await shop.stop();
  });

  it('is in the log before it is handed out, as the JSON is', async () => {
    const shop = await startApi();
    const published = async () =>
      readExport(await shop.get('/v1/ledger/export')).filter(({ entry }) =>
        entry.includes('banner.published'),
      );
    expect(await published()).toEqual([]);
    await shop.get(MARKUP, shop.keys.publishable);
    const entries = await published();
    expect(entries).toHaveLength(1);
    await shop.get('/v1/consent/banner', shop.keys.publishable);
    expect(await published()).toEqual(entries);
    await shop.stop();
  });
});
