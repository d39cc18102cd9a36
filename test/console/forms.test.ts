import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask } from '../support/http.ts';
import { type Console, signIn, startConsole, type Visitor } from './support/console.ts';
import { formsOf } from './support/routes.ts';

/** Forms that an attacker sends. */

let site: Console;
let dora: Visitor;
let csrf = '';
let path = '';
let requestId = '';

beforeAll(async () => {
  site = await startConsole();
  dora = await signIn(site.url, 'dora');
  csrf = await dora.csrf();
  const decided = await site.decide();
  requestId = decided.requestId;
  path = `/console/contests/${await site.contest(requestId, decided.visitorId)}`;
});
afterAll(() => site.stop());

describe('every form', () => {
  it('without the token, with another one, or from another site: refused, and nothing is changed', async () => {
    const other = await (await signIn(site.url, 'olaf')).csrf();
    for (const address of formsOf(path.split('/').at(-1) ?? '')) {
      const fields = {
        outcome: 'overturned',
        text: 'x'.repeat(30),
        version: '1',
        kind: 'request',
        id: requestId,
      };
      const attempts = [
        await dora.post(address, fields),
        await dora.post(address, { ...fields, csrf: '' }),
        await dora.post(address, { ...fields, csrf: other }),
        await dora.post(
          address,
          { ...fields, csrf },
          { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
        ),
        await dora.post(address, { ...fields, csrf }, { 'sec-fetch-site': 'same-site' }),
        await dora.post(address, { ...fields, csrf }, { origin: 'null' }),
      ];
      expect(attempts.map(({ status }) => [address, status])).toEqual(attempts.map(() => [address, 403]));
    }
    const bare = await ask(site.url, `${path}/claim`, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        cookie: [...dora.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      },
      body: `csrf=${csrf}`,
    });
    expect(bare.status).toBe(403);
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
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin: site.url },
      body: `text=${'x'.repeat(1_000_000)}`,
      chunked: true,
    });
    expect(unsaid.status).toBe(413);
  });

  const bodies = [
    ['JSON', 'application/json', '{"csrf":"x"}', 415],
    ['multipart', 'multipart/form-data; boundary=x', '--x--', 415],
    ['no type', '', 'csrf=x', 415],
    ['a field twice', 'application/x-www-form-urlencoded', 'csrf=a&csrf=b', 400],
    [
      'a hundred fields',
      'application/x-www-form-urlencoded',
      Array.from({ length: 100 }, (_, i) => `f${i}=x`).join('&'),
      400,
    ],
  ] as const;
  it.each(bodies)('%s', async (_name, type, body, status) => {
    const reply = await ask(site.url, `${path}/claim`, {
      method: 'POST',
      headers: {
        ...(type === '' ? {} : { 'content-type': type }),
        origin: site.url,
        cookie: [...dora.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      },
      body,
    });
    expect(reply.status).toBe(status);
    expect(reply.headers['content-type']).toMatch(/^text\/html/);
  });
});

describe('pages', () => {
  it('an address that is none is a page of the console, with its status and headers', async () => {
    for (const address of [
      '/console/nothing',
      '/console/contests/con_x',
      '/console/contests/%00',
      '/console/contests/%E0%A4%A',
      '/console/receipts/..%2f',
    ]) {
      const reply = await dora.get(address);
      expect(reply.status).toBe(404);
      expect(reply.headers['content-type']).toMatch(/^text\/html/);
      expect(reply.headers['content-security-policy']).toContain("default-src 'none'");
      expect(reply.text).toContain('href="/console"');
    }
  });

  it('no page of the console can be framed or cached, and none has anything inline', async () => {
    const pages = [
      'queue',
      'overview',
      'subjects',
      'receipts',
      'holds',
      'audit',
      'ledger',
      'keys',
      'terms',
      'sessions',
      'help',
    ];
    for (const page of [...pages.map((name) => `/console/${name}`), path]) {
      const { status, headers, text } = await dora.get(page);
      expect([page, status]).toEqual([page, 200]);
      expect(headers['x-frame-options']).toBe('DENY');
      expect(headers['cache-control']).toBe('no-store');
      expect(text).not.toMatch(/\sstyle="|\son\w+="|<script(?! type="module" nonce=)|javascript:/);
    }
  });

  it('what is secret stands in no log', async () => {
    const logs = site.gpd.logs();
    for (const [, value] of dora.cookies) expect(logs).not.toContain(value);
    expect(logs).not.toContain(csrf);
    expect(logs).not.toContain('"fault"');
  });
});
