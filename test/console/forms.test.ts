import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { TABLES } from '../../src/console/console-pages.ts';
import { ask, type Reply } from '../support/http.ts';
import { started } from '../support/started.ts';
import { cookieOf, signIn, startConsole, type Visitor } from './support/console.ts';
import { formsOf, ROUTES } from './support/routes.ts';

/** Forms that an attacker sends, and the methods and headers of every page. */

const FORM = 'application/x-www-form-urlencoded';

const site = started(() => startConsole());
let dora: Visitor;
let csrf = '';
let path = '';
let requestId = '';

beforeAll(async () => {
  dora = await signIn(site.url, 'dora');
  csrf = await dora.csrf();
  const decided = await site.decide();
  requestId = decided.requestId;
  path = `/console/contests/${await site.contest(requestId, decided.visitorId)}`;
});

/** A form as it is, with the cookies of the session. */
const send = (type: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<Reply> =>
  ask(site.url, `${path}/claim`, {
    method: 'POST',
    headers: { ...(type === '' ? {} : { 'content-type': type }), cookie: cookieOf(dora), ...headers },
    body,
  });

describe('every form', () => {
  it('without the token, with another one, or from another site: refused, and nothing is changed', async () => {
    const other = await (await signIn(site.url, 'olaf')).csrf();
    const crossSite = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    for (const address of formsOf(path.split('/').at(-1) ?? '')) {
      const text = 'x'.repeat(30);
      const fields = { outcome: 'overturned', text, version: '1', kind: 'request', id: requestId };
      const attempts = [
        await dora.post(address, fields),
        await dora.post(address, { ...fields, csrf: '' }),
        await dora.post(address, { ...fields, csrf: other }),
        await dora.post(address, { ...fields, csrf }, crossSite),
        await dora.post(address, { ...fields, csrf }, { 'sec-fetch-site': 'same-site' }),
        await dora.post(address, { ...fields, csrf }, { origin: 'null' }),
      ];
      expect(attempts.map(({ status }) => [address, status])).toEqual(attempts.map(() => [address, 403]));
    }
    expect((await send(FORM, `csrf=${csrf}`)).status).toBe(403);
    expect((await dora.get(path)).text).toContain('Claim this case');
  });

  it('takes 1 MB for what it is: too much, said before it is read', async () => {
    const fields = { csrf, outcome: 'overturned', text: 'x'.repeat(1_000_000), version: '1' };
    const reply = await dora.post(`${path}/resolve`, fields);
    expect(reply.status).toBe(413);
    expect(reply.text).toContain('too much text');
    expect(reply.headers.connection).toBe('close');
    expect((await dora.get(path)).status).toBe(200);
    const unsaid = await ask(site.url, `${path}/resolve`, {
      method: 'POST',
      headers: { 'content-type': FORM, origin: site.url },
      body: `text=${'x'.repeat(1_000_000)}`,
      chunked: true,
    });
    expect(unsaid.status).toBe(413);
  });

  it.each([
    ['JSON', 'application/json', '{"csrf":"x"}', 415],
    ['multipart', 'multipart/form-data; boundary=x', '--x--', 415],
    ['no type', '', 'csrf=x', 415],
    ['a field twice', FORM, 'csrf=a&csrf=b', 400],
    ['a hundred fields', FORM, Array.from({ length: 100 }, (_, i) => `f${i}=x`).join('&'), 400],
  ])('%s', async (_name, type, body, status) => {
    const reply = await send(type, body, { origin: site.url });
    expect(reply.status).toBe(status);
    expect(reply.headers['content-type']).toMatch(/^text\/html/);
  });
});

describe('pages', () => {
  it.each(['nothing', 'contests/con_x', 'contests/%00', 'contests/%E0%A4%A', 'receipts/..%2f'])(
    '/console/%s is a page of the console that says so, with its status and headers',
    async (address) => {
      const reply = await dora.get(`/console/${address}`);
      expect(reply.status).toBe(404);
      expect(reply.headers['content-type']).toMatch(/^text\/html/);
      expect(reply.headers['content-security-policy']).toContain("default-src 'none'");
      expect(reply.text).toContain('href="/console"');
    },
  );

  it('no page of the console can be framed or cached, and none has anything inline', async () => {
    const pages = 'queue overview subjects receipts holds audit ledger keys terms sessions help'.split(' ');
    for (const page of [...pages.map((name) => `/console/${name}`), path]) {
      const { status, headers, text } = await dora.get(page);
      expect([page, status]).toEqual([page, 200]);
      expect(headers['x-frame-options']).toBe('DENY');
      expect(headers['cache-control']).toBe('no-store');
      expect(text).not.toMatch(/\sstyle="|\son\w+="|<script(?! type="module" nonce=)|javascript:/);
    }
  });
});

describe('methods', () => {
  const METHODS = 'GET POST PUT PATCH DELETE OPTIONS TRACE PROPFIND'.split(' ');

  it('every route there is has a row', () => {
    const folder = new URL('../../src/console/', import.meta.url);
    const source = readdirSync(folder).map((file) => readFileSync(new URL(file, folder), 'utf8'));
    const call = /router\.(?:get|post|put|delete|all)\(\s*'([^']+)'/g;
    const open = [...source.join('\n').matchAll(call)].map((match) => match[1] ?? '');
    const tables = TABLES.flatMap(({ pages = {}, forms = {} }) => Object.keys({ ...pages, ...forms }));
    expect(open.length).toBeGreaterThan(2);
    expect(tables.length).toBeGreaterThan(15);
    expect([...open, ...tables].filter((each) => !Object.hasOwn(ROUTES, each))).toEqual([]);
  });

  it.each(Object.entries(ROUTES))('%s takes %s and answers 405 to the rest', async (route, allowed) => {
    const address = `/console${route.replace(':id', 'con_00000000000000000000000000')}`;
    for (const method of METHODS) {
      if (allowed.split(', ').includes(method)) continue;
      for (const headers of [{ cookie: cookieOf(dora), origin: site.url }, {}]) {
        const reply = await ask(site.url, address, { method, headers });
        const { status, headers: got } = reply;
        expect({ method, status, allow: got.allow }).toEqual({ method, status: 405, allow: allowed });
        expect(got['content-type']).toMatch(/^text\/html/);
        expect(got['content-security-policy']).toContain("default-src 'none'");
        expect(reply.text).toContain('cannot be opened directly');
      }
    }
    // Its allowed methods do not answer 405.
    const method = allowed.split(', ')[0] ?? '';
    expect((await ask(site.url, address, { method })).status).not.toBe(405);
  });
});

it('what is secret stands in no log', async () => {
  await dora.get('/console/queue');
  const logs = site.gpd.logs();
  for (const [, value] of dora.cookies) expect(logs).not.toContain(value);
  expect(logs).not.toContain(csrf);
  expect(logs).not.toContain('"fault"');
});
