import { beforeAll, describe, expect, it } from 'vitest';
import { bearer, startApiProcess } from '../consent/app/support/api.ts';
import { ask, type Reply } from '../support/http.ts';
import { started } from '../support/started.ts';
import { expectNoneLogged } from './support/faults.ts';
import { exchange } from './support/raw.ts';

/** Every route of /openapi.json by every method, and by the spellings that make a router and a proxy disagree. */

const api = started(() => startApiProcess({ settings: { GPD_RATE_PRIVACY: 'off', GPD_RATE_PUBLIC: 'off' } }));
expectNoneLogged(/"event":"fault"|Warning/, () => api.gpd.logs());
let routes: ReadonlyMap<string, readonly string[]>;
beforeAll(async () => {
  const { paths } = (await ask(api.gpd.url, '/openapi.json')).json() as {
    paths: Record<string, Record<string, unknown>>;
  };
  routes = new Map(
    Object.entries(paths).map(([path, methods]) => [
      path,
      Object.keys(methods).map((name) => name.toUpperCase()),
    ]),
  );
});

const METHODS = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'LOCK', 'PURGE'],
  ...['SEARCH', 'M-SEARCH', 'QUERY'],
];
/** A value for each parameter in a path. */
const filled = (path: string): string => path.replace(/\{\w+\}/g, '0');
/** A stack, a path of this machine, the name of a library: what an error page of a framework shows. */
const LEAK = /node_modules|\bat \w+ \(|file:\/\/|\/dist\/|\.js:\d|express|<pre>|SQLITE|Error:/i;

function expectTame(probe: string, { status, text }: Pick<Reply, 'status' | 'text'>): void {
  expect({ what: probe, tame: status < 500 }).toEqual({ what: probe, tame: true });
  // Scripts and the document itself may speak of anything.
  if (status >= 400)
    expect({ what: probe, leak: LEAK.exec(text)?.[0] }).toEqual({ what: probe, leak: undefined });
}

describe('methods', () => {
  it('that a route does not have are 405, with Allow naming those that it has', async () => {
    for (const [path, has] of routes) {
      const takes = new Set([...has, ...(has.includes('GET') ? ['HEAD'] : [])]);
      await Promise.all(
        METHODS.filter((method) => !takes.has(method) && method !== 'OPTIONS').map(async (method) => {
          const probe = `${method} ${path}`;
          const reply = await ask(api.gpd.url, filled(path), { method });
          expectTame(probe, reply);
          expect({ what: probe, status: reply.status }).toEqual({ what: probe, status: 405 });
          const allowed = new Set((reply.headers.allow ?? '').split(', '));
          allowed.delete('OPTIONS');
          expect({ what: probe, allowed }).toEqual({ what: probe, allowed: takes });
          if (method !== 'HEAD') expect(reply.json()).toMatchObject({ error: 'method-not-allowed' });
        }),
      );
    }
  });

  it('OPTIONS is a preflight or 405, and never has a body of a route', async () => {
    for (const path of routes.keys()) {
      const reply = await ask(api.gpd.url, filled(path), { method: 'OPTIONS' });
      expectTame(`OPTIONS ${path}`, reply);
      expect([204, 405]).toContain(reply.status);
    }
  });

  it('TRACE echoes nothing', async () => {
    const reply = await ask(api.gpd.url, '/healthz', { method: 'TRACE', headers: { 'x-canary': 'c4n4ry' } });
    expect(reply.status).toBe(405);
    expect(JSON.stringify(reply)).not.toContain('c4n4ry');
  });

  it('another method by header or query is not believed', async () => {
    const headers = { 'x-http-method-override': 'GET', 'x-method-override': 'GET', 'x-http-method': 'GET' };
    const reply = await ask(api.gpd.url, '/healthz?_method=GET', { method: 'DELETE', headers });
    expect(reply.status).toBe(405);
  });
});

const encodeAt = (path: string, at: number): string =>
  `${path.slice(0, at)}%${path.charCodeAt(at).toString(16).padStart(2, '0')}${path.slice(at + 1)}`;

/** Some readers take these for the same address, and others do not. */
const SPELLINGS: Readonly<Record<string, (path: string) => string>> = {
  'a slash behind': (path) => `${path}/`,
  'two slashes before': (path) => `/${path}`,
  'two slashes within': (path) =>
    `${path.slice(0, path.lastIndexOf('/'))}/${path.slice(path.lastIndexOf('/'))}`,
  'an encoded slash': (path) => `/${path.slice(1).replace('/', '%2f')}`,
  'an encoded first slash': (path) => `/%2f${path.slice(1)}`,
  'a backslash': (path) => `/${path.slice(1).replace('/', '\\')}`,
  'an encoded backslash': (path) => `/${path.slice(1).replace('/', '%5c')}`,
  'dot segments': (path) => `/x/..${path}`,
  'encoded dot segments': (path) => `/x/%2e%2e${path}`,
  'a dot segment behind': (path) => `${path}/.`,
  'a parent behind': (path) => `${path}/x/..`,
  'a semicolon': (path) => `${path};x=y`,
  'an encoded letter': (path) => encodeAt(path, 2),
  'an encoded question mark': (path) => `${path}%3fkid=acme`,
  'an encoded hash': (path) => `${path}%23`,
  'a hash': (path) => `${path}#x`,
  'NUL behind': (path) => `${path}%00`,
  'a line break behind': (path) => `${path}%0d%0aX-Injected:%20yes`,
  capitals: (path) => path.toUpperCase(),
  'a full-width slash': (path) => path.replace(/(?!^)\//, '%ef%bc%8f'),
  'an overlong slash': (path) => path.replace(/(?!^)\//, '%c0%af'),
  'half an escape': (path) => `${path}%`,
  'a bad escape': (path) => `${path}%zz`,
  'a bad byte': (path) => `${path}%ff`,
  'a right-to-left override': (path) => `${path}%e2%80%ae`,
  'a double encoding': (path) => `${path}%252e%252e%252f`,
  '4,000 characters more': (path) => `${path}/${'a/'.repeat(2000)}`,
  'a query of many keys': (path) => `${path}?${'a[b][c]=1&'.repeat(300)}`,
  'a query that pollutes': (path) =>
    `${path}?__proto__[x]=1&constructor[prototype][x]=1&kid=__proto__&settings[view%20options][client]=1`,
};

describe('spellings', () => {
  it.each(Object.entries(SPELLINGS))(
    '%s: never a 500, never a stack, nothing behind a key is open',
    async (name, spell) => {
      await Promise.all(
        [...routes].map(async ([path, methods]) => {
          const method = methods[0] ?? 'GET';
          const plain = await ask(api.gpd.url, filled(path), { method });
          const reply = await ask(api.gpd.url, spell(filled(path)), { method });
          const probe = `${method} ${path}, ${name}`;
          expectTame(probe, reply);
          expect(reply.headers['x-injected']).toBeUndefined();
          // No other spelling may reach a route that needs a credential.
          if (plain.status === 401)
            expect({ what: probe, opened: reply.status < 400 }).toEqual({ what: probe, opened: false });
        }),
      );
    },
  );

  it('raw bytes that no client would send in a target are refused or lead nowhere', async () => {
    const targets = ['/healthz\xff', '/\xe2\x80\xae', '/healthz\t', '/healthz\x7f', '/\x01', '/healthz"<>'];
    for (const target of targets) {
      const { answers, rest } = await exchange(api.gpd.port, [`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`]);
      expect(answers).toHaveLength(1);
      expect([400, 404]).toContain(answers[0]?.status);
      expect(rest).toBe('');
    }
  });
});

describe('ids in paths', () => {
  const IDS = [
    ...['', '..', '%2e%2e', '__proto__', 'constructor', '%00', '-1', '1e3', '00', '9'.repeat(30), '%25'],
    ...["'%20OR%201=1--", '%F0%9F%92%A9', 'x'.repeat(3000), '%ed%a0%80', 'a%2fb', '%0d%0a'],
  ];
  it.each([
    '/v1/decisions/',
    '/v1/consent/receipts/',
    '/v1/consent/proofs/',
    '/v1/ledger/tile/',
    '/v1/ledger/',
    '/ledger/',
    '/v1/embed/',
    '/assets/',
  ])('%s takes none of the hostile ones', async (prefix) => {
    for (const id of IDS) {
      for (const path of [prefix + id, `${prefix}${id}/checkpoint`, `${prefix}0/${id}`]) {
        const reply = await ask(api.gpd.url, path, { headers: bearer(api.keys.secret) });
        expectTame(path, reply);
        if (reply.status < 400)
          expect(path).toMatch(/^\/v1\/(?:ledger\/+(?:checkpoint)?|consent\/proofs\/0\/)$/);
      }
    }
  });

  it.each([...['__proto__', 'constructor', 'toString', '', '%00', '..', 'acme&kid=acme', 'acme%7cx']])(
    'kid=%s is no tenant',
    async (kid) => {
      for (const path of ['/_fp/pubkey', '/my-data', '/v1/embed.js', '/v1/consent/banner']) {
        const reply = await ask(api.gpd.url, `${path}?kid=${kid}`);
        expectTame(`${path}?kid=${kid}`, reply);
        expect(reply.text).not.toContain('publicKey');
      }
    },
  );
});
