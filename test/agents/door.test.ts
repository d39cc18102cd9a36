import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { createDoor } from '../../src/agents/door-service.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { tenantSettingsSchema } from '../../src/tenants/settings.ts';
import type { Tenant } from '../../src/tenants/tenant.ts';
import { addApiKey } from '../support/api-key.ts';
import { tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { expectError, SEEN_WITHIN } from '../support/expect.ts';
import { type Ask, ask, openWire, postJson, type Reply } from '../support/http.ts';
import { NOW } from '../support/make.ts';
import { startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import {
  AGENT_ORIGIN,
  type Agent,
  createAgent,
  createDeps,
  quoted,
  type SignOptions,
  signedHeaders,
} from './support/agent.ts';
import { checkAt, type Headers, PROXIED, SHOP, signNow } from './support/door.ts';

/** The door as a proxy and a backend see it: `GET /v1/agents/check`, `POST /v1/agents/verify`, `…/review`. */

const TAGS = 'web-bot-auth,agent-payer-auth';
const gpd = started(() => startGpd({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1', GPD_WBA_TAGS: TAGS } }));
const direct = started(() => startGpd());
const agent = createAgent();
let secret = '';

const signed = (options: SignOptions = {}, by = agent): Headers => signNow(by, options);
const check = (headers: Ask['headers'] = {}, base = gpd.url): Promise<Reply> => checkAt(base, headers);

const verify = (body: object, key = secret): Promise<Reply> =>
  postJson(gpd.url, '/v1/agents/verify', body, { authorization: `Bearer ${key}` });

const found = ({ status, headers }: Reply) => ({
  status,
  ...Object.fromEntries(Object.entries(headers).filter(([name]) => /^gpd-agent(?!-case)/.test(name))),
});

let policies = 0;
/** Sets a policy behind a row of this call alone, and waits until the server refuses by that row. */
async function setPolicy(...rows: readonly object[]): Promise<void> {
  policies += 1;
  const path = `/policy-${policies}`;
  const policy = JSON.stringify([{ agent: '*', path, action: 'deny' }, ...rows]);
  await gpd.json(['tenants', 'set', KID, `agents.policy=${policy}`]);
  await vi.waitFor(async () => expect((await at(path)).status).toBe(403), SEEN_WITHIN);
}
const at = (path: string, headers: Headers = {}): Promise<Reply> =>
  check({ 'x-forwarded-uri': path, ...headers });

beforeAll(async () => {
  const file = join(tempDir('jwks'), 'agent.json');
  writeFileSync(file, JSON.stringify({ keys: [agent.jwk] }));
  await gpd.json(['agents', 'add', AGENT_ORIGIN, '--jwks', file]);
  secret = await addApiKey(gpd, 'secret');
  await vi.waitFor(
    async () => expect((await check(signed())).headers['gpd-agent-status']).toBe('verified'),
    SEEN_WITHIN,
  );
});

describe('a check by a proxy', () => {
  it('lets everything through without a policy, and says who signed', async () => {
    expect(found(await check())).toEqual({ status: 204, 'gpd-agent-status': 'none' });
    expect(found(await check(signed()))).toEqual({
      status: 204,
      'gpd-agent-status': 'verified',
      'gpd-agent': AGENT_ORIGIN,
    });
    const pay = signed({ params: { tag: '"agent-payer-auth"' } });
    expect(found(await check(pay))).toMatchObject({ 'gpd-agent-intent': 'pay' });
    expect(found(await check(signed({}, createAgent())))).toEqual({
      status: 204,
      'gpd-agent-status': 'unverified',
    });
    expect(found(await check(signed({ host: 'other.example' })))).toEqual({
      status: 204,
      'gpd-agent-status': 'invalid',
    });
  });

  it('covers method and target of the visitor, by either set of names', async () => {
    const components = ['"@authority"', '"@method"', '"@path"', '"@query"', '"signature-agent";key="sig1"'];
    const headers = signed({ components, method: 'PUT', target: '/cart?a=%20b' });
    const status = async (over: Headers, base?: string): Promise<unknown> =>
      (await ask(base ?? gpd.url, '/v1/agents/check', { headers: { ...headers, ...over } })).headers[
        'gpd-agent-status'
      ];
    const site = { 'x-forwarded-proto': 'https', 'x-forwarded-host': SHOP };
    const traefik = { ...site, 'x-forwarded-method': 'PUT', 'x-forwarded-uri': '/cart?a=%20b' };
    const nginx = { ...site, 'x-original-method': 'PUT', 'x-original-uri': '/cart?a=%20b' };
    expect(await status(traefik)).toBe('verified');
    expect(await status(nginx)).toBe('verified');
    expect(await status({ ...nginx, host: SHOP, 'x-forwarded-host': '' })).toBe('none');
    expect(await status({ ...traefik, 'x-forwarded-uri': '/cart' })).toBe('invalid');
  });

  it('refuses to choose between two names that say different things', async () => {
    for (const other of [{ 'x-original-uri': '/free' }, { 'x-original-method': 'POST' }])
      expectError(await check(other), 'invalid-request');
  });

  it('believes forwarded headers from a trusted proxy alone', async () => {
    expect(found(await check(signed(), direct.url))).toEqual({ status: 204, 'gpd-agent-status': 'none' });
  });

  it('finds nobody at the host of no tenant, or at none that can be read', async () => {
    for (const host of ['nobody.example', `${SHOP}, nobody.example`, '*', ''])
      expect(found(await check({ ...signed(), 'x-forwarded-host': host }))).toEqual({
        status: 204,
        'gpd-agent-status': 'none',
      });
    expect(
      found(await check({ 'x-forwarded-host': `${SHOP.toUpperCase()}:443`, ...signed() })),
    ).toMatchObject({
      'gpd-agent': AGENT_ORIGIN,
    });
  });

  it('finds the tenant under every spelling of its host that a server takes for it', async () => {
    await setPolicy();
    for (const host of [`${SHOP}.`, `${SHOP}:8443`, `${SHOP}.:443`, `${SHOP}:`])
      expect((await at(`/policy-${policies}`, { 'x-forwarded-host': host })).status, host).toBe(403);
    for (const host of [`x${SHOP}`, `${SHOP}.x`])
      expect((await at(`/policy-${policies}`, { 'x-forwarded-host': host })).status, host).toBe(204);
  });

  it('answers a signature that covers a header of an odd name', async () => {
    for (const name of ['constructor', '__proto__']) {
      const headers = signed();
      const input = String(headers['signature-input']).replace('(', `("${name}" `);
      expect(found(await check({ ...headers, 'signature-input': input })), name).toEqual({
        status: 204,
        'gpd-agent-status': 'invalid',
      });
    }
  });

  it('signs all lines of a header, where servers may read the first or the last', async () => {
    const components = ['"@authority"', '"content-type"', '"signature-agent";key="sig1"'];
    const text = { 'content-type': 'text/plain' };
    const lines = async (...types: readonly string[]): Promise<string | undefined> => {
      const wire = await openWire(Number(new URL(gpd.url).port));
      const headers = {
        ...PROXIED,
        ...signed({ components, headers: text }),
        host: 'x',
        connection: 'close',
      };
      const single = Object.entries(headers).filter(([name]) => name !== 'content-type');
      const all = [...single, ...types.map((type) => ['content-type', type] as const)];
      const head = all.map(([name, value]) => `${name}: ${value}`).join('\r\n');
      wire.send(`GET /v1/agents/check HTTP/1.1\r\n${head}\r\n\r\n`);
      return /^gpd-agent-status: (\w+)/im.exec((await wire.closed).text)?.[1];
    };
    expect(await lines('text/plain')).toBe('verified');
    expect(await lines('text/plain', 'text/html')).toBe('invalid');
  });

  it('takes a nonce once', async () => {
    const headers = signed({ params: { nonce: quoted(`n-${Date.now()}`) } });
    expect(found(await check(headers))).toMatchObject({ 'gpd-agent-status': 'verified' });
    expect(found(await check(headers))).toMatchObject({ 'gpd-agent-status': 'invalid' });
    const body = { method: 'GET', url: `${ORIGIN}/`, headers };
    expect((await verify(body)).json()).toMatchObject({ status: 'invalid', reason: 'replayed' });
  });
});

describe('a policy', () => {
  it('is read from top to bottom, and a refusal has a case', async () => {
    await setPolicy(
      { agent: AGENT_ORIGIN, path: '/checkout', action: 'allow' },
      { agent: '*', status: 'invalid', path: '/', action: 'deny' },
      { agent: '*', path: '/checkout', action: 'require' },
      { agent: '*', path: '/slow', action: 'rate', rate: '2/60' },
    );
    expect((await at('/checkout', signed())).status).toBe(204);
    const unsigned = await at('/checkout/pay?x=1');
    expect(unsigned.status).toBe(401);
    expect(unsigned.headers['accept-signature']).toMatch(/^sig1=\("@authority" .*tag="web-bot-auth"$/);
    const denied = await at('/', signed({ host: 'other.example' }));
    expect(denied.status).toBe(403);
    for (const reply of [unsigned, denied]) {
      expect(reply.headers['gpd-agent-case']).toMatch(/^req_[0-9A-Z]{26}$/);
      expect(reply.text + JSON.stringify(reply.headers)).not.toMatch(/wrong-host|invalid|unverified/);
    }
    for (const status of [204, 204, 429]) expect((await at('/slow')).status).toBe(status);
    expect((await at('/slow')).headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect((await at('/slow', { 'x-forwarded-for': '198.51.100.7' })).status).toBe(204);
    expect((await at('/slower')).status).toBe(204);
  });

  it('holds however the path is written', async () => {
    await setPolicy({ agent: '*', path: '/admin', action: 'deny' });
    for (const path of [
      '/admin',
      '/%61dmin/',
      '//admin',
      '/./admin',
      '/x/../admin',
      '/admin/a?b',
      '/x/%2e%2e/admin',
    ])
      expect((await at(path)).status, path).toBe(403);
    for (const path of ['/administrators', '/x/admin', '/', '/%zz'])
      expect((await at(path)).status, path).toBe(204);
  });

  it('holds in each way in which a server may read the path', async () => {
    await setPolicy(
      { agent: '*', path: '/search', action: 'rate', rate: '9999/60' },
      { agent: '*', path: '/Public', action: 'allow' },
      { agent: '*', path: '/admin/deep', action: 'deny' },
    );
    const bypasses = [
      '/%61dmin/deep/%ff',
      '/%61dmin/deep/%',
      '/%2561dmin/deep',
      '/admin;x=1/deep',
      '/admin/deep;x',
      '/Admin/DEEP',
      '/admin%2fdeep',
      '/admin/deep/../../free',
      '/admin/deep/..%2f..%2ffree',
      '/Public/../admin/deep',
      '/search/..;/admin/deep',
      '/x//../admin/a/../deep',
      '/x#/../admin/deep',
      `http://${SHOP}/admin/deep`,
    ];
    for (const path of bypasses) expect((await at(path)).status, path).toBe(403);
    for (const path of ['/deep/../admin', '/x/../y', '/Public/a;b', '/search;x', '/free?/admin/deep'])
      expect((await at(path)).status, path).toBe(204);
  });

  it('takes a path that is missing, or longer than it is read, for any path', async () => {
    await setPolicy(
      { agent: '*', path: '/search', action: 'rate', rate: '9999/60' },
      { agent: '*', path: '/admin', action: 'deny' },
    );
    const { 'x-forwarded-uri': _, ...unsaid } = PROXIED;
    expect((await ask(gpd.url, '/v1/agents/check', { headers: unsaid })).status).toBe(403);
    expect((await at(`/free/${'a/'.repeat(1100)}`)).status).toBe(403);
    expect((await at(`/free/${'a/'.repeat(60)}..`)).status).toBe(204);
    expect((await at(`/free/${'a/'.repeat(70)}..`)).status).toBe(403);
    expect((await at(`/free/${'a/'.repeat(500)}?${'q'.repeat(5000)}`)).status).toBe(204);
  });

  it('that allows some paths allows nothing that may be another', async () => {
    await setPolicy(
      { agent: '*', path: '/Public', action: 'allow' },
      { agent: '*', path: '/', action: 'deny' },
    );
    for (const path of ['/Public', '/Public/a', '/Public/a%20b?c', '//Public;x'])
      expect((await at(path)).status, path).toBe(path.includes(';') ? 403 : 204);
    for (const path of ['/admin/../Public', '/Public/..;/admin', '/public', '/Public/%2e%2e/admin'])
      expect((await at(path)).status, path).toBe(403);
  });

  it('that is dry refuses nobody', async () => {
    await setPolicy({ agent: '*', path: '/dry', action: 'deny' });
    expect((await at('/dry')).status).toBe(403);
    await gpd.json(['tenants', 'set', KID, 'agents.dryRun=true']);
    await vi.waitFor(async () => expect((await at('/dry')).status).toBe(204), SEEN_WITHIN);
    await gpd.json(['tenants', 'set', KID, 'agents.dryRun=false']);
  });

  it.each([
    ['no JSON', 'deny all', /agents\.policy.*list/],
    ['no list', '{}', /agents\.policy.*list/],
    ['another action', '[{"agent":"*","path":"/","action":"block"}]', /agents\.policy\.0\.action/],
    [
      'an agent without https',
      '[{"agent":"*","path":"/","action":"deny"},{"agent":"x","path":"/","action":"deny"}]',
      /agents\.policy\.1\.agent/,
    ],
    ['a path that is none', '[{"agent":"*","path":"x","action":"deny"}]', /agents\.policy\.0\.path/],
    ['a rate without a number', '[{"agent":"*","path":"/","action":"rate"}]', /agents\.policy\.0\.rate/],
    [
      'a number without a rate',
      '[{"agent":"*","path":"/","action":"deny","rate":"1/1"}]',
      /agents\.policy\.0\.rate/,
    ],
    [
      'a field too many',
      '[{"agent":"*","path":"/","action":"deny","ip":"x"}]',
      /agents\.policy\.0: it has an unknown field/,
    ],
  ])('with %s is refused by row and field, exit 2', async (_name, policy, message) => {
    const ran = await gpd.cli(['tenants', 'set', KID, `agents.policy=${policy}`]);
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringMatching(message) as string });
  });
});

describe('a case', () => {
  const review = (caseId: unknown, rest: object = {}): Promise<Reply> =>
    postJson(gpd.url, '/v1/agents/review', { case: caseId, statement: 'we are a shop', ...rest });

  it('is the decision that staff find, and holds nothing of the visitor', async () => {
    await setPolicy({ agent: '*', path: '/case', action: 'deny' });
    const refused = await at('/case/of-somebody', { 'user-agent': 'Somebody/1.0' });
    const caseId = refused.headers['gpd-agent-case'] as string;
    const headers = { authorization: `Bearer ${secret}` };
    const decision = (await ask(gpd.url, `/v1/decisions/${caseId}`, { headers })).json();
    expect(decision).toMatchObject({
      requestId: caseId,
      visitorId: null,
      signature: { status: 'none', reason: null },
      door: { action: 'deny', row: 1, path: '/case' },
    });
    expect(JSON.stringify(decision)).not.toMatch(/Somebody|203\.0\.113|of-somebody/);
  });

  it('is reviewed once, with a key that reads and answers', async () => {
    const caseId = (await at('/case', signed({ host: 'other.example' }))).headers['gpd-agent-case'];
    const filed = await review(caseId, { email: 'ops@agent.example' });
    expect(filed.status).toBe(202);
    const { contestId, caseKey, dueAt } = filed.json() as Record<string, string>;
    expect({ contestId, dueAt }).toEqual({
      contestId: expect.stringMatching(/^con_/) as string,
      dueAt: expect.stringMatching(/Z$/) as string,
    });
    const again = await review(caseId);
    expect(again.status).toBe(202);
    expect(again.json()).toEqual({ contestId, dueAt });
    const shown = await postJson(gpd.url, '/case', { caseKey });
    expect(shown.json()).toMatchObject({
      contestId,
      kind: 'agent',
      status: 'open',
      decision: { class: 'agent' },
    });
    await gpd.json([
      'contests',
      'resolve',
      contestId!,
      '--outcome',
      'overturned',
      '--reason',
      'The agent is welcome, and gets a row.',
      '--yes',
    ]);
    expect((await postJson(gpd.url, '/case', { caseKey })).json()).toMatchObject({ outcome: 'overturned' });
  });

  it('that is unknown, malformed or a visit’s is none', async () => {
    expectError(await review('req_01KAG0000000000000000000AA'), 'no-such-decision');
    expectError(await review('req_1'), 'invalid-request');
    expectError(await review(undefined), 'invalid-request');
  });
});

describe('a flood of refusals', () => {
  let now = NOW;
  const known = Array.from({ length: 20 }, (_, i) => createAgent(`https://a${i}.example`));
  const stored: string[] = [];
  let isWritable = true;
  const settings = tenantSettingsSchema.parse({
    'agents.policy': [{ agent: '*', path: '/', action: 'deny' }],
  });
  const tenant = { kid: KID, since: 0, origins: new Set([ORIGIN]), settings } as unknown as Tenant;
  const door = createDoor({
    ...createDeps(known),
    tags: ['web-bot-auth'],
    clock: () => now,
    tenants: { all: () => [tenant] },
    record: async (_tenant, { requestId, outcome }) => {
      if (!isWritable) throw new Unavailable('the database is away');
      stored.push(`${requestId} ${outcome.named}`);
    },
    count: () => {},
    limiterOf: () => () => Promise.resolve(0),
  });
  let calls = 0;
  const refuse = async (count: number, by: readonly Agent[] = []): Promise<string[]> => {
    const params = { created: String(now / 1000), expires: String(now / 1000 + 60) };
    const requests = Array.from({ length: count }, (_request, i) => {
      const one = by[i % by.length];
      const headers = one ? signedHeaders(one, { host: 'other.example', params }) : {};
      const described = { method: 'GET', host: SHOP, target: '/', asked: '/', https: true, limitKey: '' };
      calls += 1;
      return { ...described, headers, requestId: `req-${calls}` };
    });
    return (await Promise.all(requests.map((one) => door.check(one)))).map(({ caseId }) => caseId ?? '');
  };

  it('stores ten of each kind and second, and further ones share the last one’s case', async () => {
    const cases = await refuse(60);
    expect(stored).toHaveLength(10);
    expect(cases.slice(10)).toEqual(Array.from({ length: 50 }, () => cases[9]));
    now += 1000;
    await refuse(3);
    expect(stored).toHaveLength(13);
  });

  it('that names many agents stores twenty a second of a tenant, and none shares another’s case', async () => {
    now += 1000;
    await refuse(400, known);
    stored.length = 0;
    now += 1000;
    const cases = await refuse(400, known);
    expect(stored).toHaveLength(20);
    now += 1000;
    await refuse(20);
    const before = stored.length;
    const shared = await refuse(20, known);
    expect(stored.length - before).toBeLessThanOrEqual(10);
    expect(new Set(shared).size).toBe(20);
    expect(new Set(cases).size).toBe(20);
  });

  it('that could not be stored leaves no number to share', async () => {
    now += 1000;
    isWritable = false;
    await expect(refuse(30)).rejects.toThrow(Unavailable);
    isWritable = true;
    expect((await refuse(1))[0]).toMatch(/^req-/);
  });
});

describe('a backend that asks', () => {
  const url = `${ORIGIN}/pay?x=1`;
  const components = ['"@authority"', '"@target-uri"', '"content-digest"', '"signature-agent";key="sig1"'];
  const digest = `sha-256=:${createHash('sha256').update('body').digest('base64')}:`;
  const options = { components, target: '/pay?x=1', method: 'POST', headers: { 'content-digest': digest } };
  const base64 = (text: string): string => Buffer.from(text).toString('base64');

  it('learns who signed, and until when', async () => {
    const headers = signed(options);
    const {
      status,
      headers: answered,
      ...reply
    } = await verify({ method: 'POST', url, headers, body: base64('body') });
    expect(status).toBe(200);
    expect(answered['cache-control']).toBe('no-store');
    expect(reply.json()).toEqual({
      status: 'verified',
      agent: AGENT_ORIGIN,
      keyid: agent.thumbprint,
      tag: 'web-bot-auth',
      intent: null,
      expires: expect.any(Number) as number,
      reason: null,
    });
    const lines = { ...headers, Signature: [headers['signature']], signature: [] };
    expect((await verify({ method: 'POST', url, headers: lines })).json()).toMatchObject({
      status: 'verified',
    });
  });

  it('learns why not', async () => {
    const headers = signed(options);
    const answer = async (over: object): Promise<unknown> =>
      (await verify({ method: 'POST', url, headers, ...over })).json();
    expect(await answer({ body: base64('other') })).toMatchObject({
      status: 'invalid',
      reason: 'digest-mismatch',
      agent: null,
    });
    expect(await answer({ url: `${ORIGIN}/pay?x=2` })).toMatchObject({ reason: 'signature-mismatch' });
    expect(await answer({ url: 'https://other.example/pay?x=1' })).toMatchObject({
      reason: 'signature-mismatch',
    });
    expect(await answer({ headers: {} })).toEqual({
      status: 'none',
      agent: null,
      keyid: null,
      tag: null,
      intent: null,
      expires: null,
      reason: null,
    });
  });

  it('is not told that a body is signed where no digest of it is', async () => {
    const digests = 'unixsum=:AAAA:';
    const components = ['"@authority"', '"content-digest";key="unixsum"', '"signature-agent";key="sig1"'];
    const headers = signed({ components, headers: { 'content-digest': digests } });
    const body = Buffer.from('forged');
    const added = `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
    const described = {
      ...{ method: 'GET', url: `${ORIGIN}/`, body: body.toString('base64') },
      headers: { ...headers, 'content-digest': `${digests}, ${added}` },
    };
    expect((await verify(described)).json()).toMatchObject({
      status: 'unverified',
      reason: 'digest-not-supported',
    });
  });

  it('may describe headers and digests of odd names', async () => {
    const odd = JSON.parse('{"constructor": "a", "toString": ["b"], "__proto__": "c"}') as object;
    expect((await verify({ method: 'GET', url, headers: odd })).json()).toMatchObject({ status: 'none' });
    const headers = signed({ ...options, headers: { 'content-digest': `constructor=:AAAA:, ${digest}` } });
    expect((await verify({ method: 'POST', url, headers, body: base64('body') })).json()).toMatchObject({
      status: 'verified',
    });
  });

  it('needs a key, and a request in order', async () => {
    const body = { method: 'GET', url, headers: {} };
    expectError(await verify(body, 'gpd_sk_nobody'), 'unauthenticated');
    expectError(await verify(body, await addApiKey(gpd, 'publishable')), 'insufficient-scope');
    expect((await verify(body, await addApiKey(gpd, 'read-only'))).status).toBe(200);
    expect((await verify(body, await addApiKey(gpd, 'operator'))).status).toBe(200);
    for (const over of [
      { url: '/pay' },
      { url: 'https://a@b/' },
      { method: 'GE T' },
      { headers: { a: 1 } },
      { body: '%' },
    ])
      expectError(await verify({ ...body, ...over }), 'invalid-request');
  });
});
