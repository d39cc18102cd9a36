import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../src/lib/clock.ts';
import { describeFault } from '../../src/ops/log-service.ts';
import { type Authenticate, createAuthenticator } from '../../src/rights/oidc-service.ts';
import { publicJwk } from '../support/jws.ts';
import { AUDIENCE, type Idp, startIdp } from '../support/oidc.ts';
import { freePort } from '../support/ports.ts';
import { answerTo, movableClock, oidcSettings } from './support.ts';

/**
 * When gpd reads the keys of a provider. One that is down, hangs, redirects or sends garbage never causes a 500, and no log line
 * contains a token.
 */

const PROVIDER_READ = ['/.well-known/openid-configuration', '/jwks'];

let idp: Idp;
let isRunning = false;
let authenticate: Authenticate;
let clock: ReturnType<typeof movableClock>;
let faults: unknown[];
let sentTokens: string[];

function connect(target: Pick<Idp, 'issuer' | 'audience'> = idp): void {
  authenticate = createAuthenticator(oidcSettings(target), clock, (error) => faults.push(error), clock);
}
beforeEach(async () => {
  if (isRunning) await idp.fault(null);
  else idp = await startIdp();
  isRunning = true;
  clock = movableClock();
  faults = [];
  sentTokens = [];
  connect();
  await idp.asked();
});
afterEach(() => {
  const logText = faults.map((error) => `${String(error)} ${JSON.stringify(describeFault(error))}`).join();
  for (const token of sentTokens) for (const part of token.split('.')) expect(logText).not.toContain(part);
});
afterAll(() => idp.stop());

async function stopProvider(): Promise<void> {
  isRunning = false;
  await idp.stop();
}

async function statusOf(token: string): Promise<number> {
  sentTokens.push(token);
  return (await answerTo(authenticate, `Bearer ${token}`)).status;
}
/** Creates a token that is good for a year, begun a day ago. */
function createToken(kid?: string): string {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iat: now - 86_400, exp: now + 365 * 86_400 };
  return idp.forge(idp.claims(claims), kid === undefined ? {} : { kid });
}
const reasons = (): unknown[] => faults.map((error) => describeFault(error)['reason']);

describe('keys', () => {
  it('are asked for with the first token that could be one, and then kept', async () => {
    expect(await statusOf('x.y.z')).toBe(401);
    expect(await statusOf(idp.forge(idp.claims({ iss: 'https://id.evil.example' })))).toBe(401);
    expect(await idp.asked()).toEqual([]);
    for (let i = 0; i < 20; i += 1) expect(await statusOf(createToken())).toBe(200);
    expect(await idp.asked()).toEqual(PROVIDER_READ);
  });

  it('are asked for once when many come at the same time', async () => {
    const tokens = Array.from({ length: 50 }, () => createToken());
    expect(await Promise.all(tokens.map(statusOf))).toEqual(tokens.map(() => 200));
    expect(await idp.asked()).toEqual(PROVIDER_READ);
  });
});

describe('a rotation', () => {
  it('is noticed by the first token of the new key, at once and again and again', async () => {
    expect(await statusOf(createToken())).toBe(200);
    for (let i = 0; i < 3; i += 1) {
      const before = createToken();
      await idp.rotate();
      expect(await statusOf(await idp.token({ gpd_role: 'dpo' }))).toBe(200);
      expect(await statusOf(before)).toBe(401);
    }
  });

  it('that keeps the old key refuses nobody', async () => {
    const before = createToken();
    expect(await statusOf(before)).toBe(200);
    await idp.rotate({ keepOld: true });
    expect(await statusOf(createToken())).toBe(200);
    expect(await statusOf(before)).toBe(200);
  });

  it('that nobody uses yet is noticed beside a request after ten minutes', async () => {
    const before = createToken();
    expect(await statusOf(before)).toBe(200);
    await idp.rotate();
    clock.advance(10 * MINUTE - 1000);
    expect(await statusOf(before)).toBe(200);
    clock.advance(1000);
    // The request that notices it may be answered before or after the new keys have come.
    expect([200, 401]).toContain(await statusOf(before));
    await expect.poll(() => statusOf(before)).toBe(401);
  });

  it.each([-5 * HOUR, 0, 5 * HOUR])(
    'is waited for after an hour, though the machine’s clock was set by %i ms meanwhile',
    async (ms) => {
      const wall = movableClock();
      authenticate = createAuthenticator(oidcSettings(idp), wall, () => {}, clock);
      const before = createToken();
      expect(await statusOf(before)).toBe(200);
      await idp.rotate();
      wall.advance(ms);
      clock.advance(MINUTE);
      expect(await statusOf(before)).toBe(200);
      clock.advance(HOUR - MINUTE);
      // A key that was withdrawn is not believed once more.
      expect(await statusOf(before)).toBe(401);
    },
  );
});

it('many kids that nobody knows are one look a second, and a known one needs none', async () => {
  let ticks = 0;
  authenticate = createAuthenticator(
    oidcSettings(idp),
    Date.now,
    () => {},
    () => ticks,
  );
  expect(await statusOf(createToken())).toBe(200);
  await idp.asked();
  for (const looks of [1, 2]) {
    ticks += 1000;
    const unknown = Array.from({ length: 50 }, (_, i) => createToken(`k-${looks}-${i}`));
    const answers = Promise.all(unknown.map(statusOf));
    expect(await statusOf(createToken())).toBe(200);
    expect(new Set(await answers)).toEqual(new Set([401]));
    expect(await statusOf(createToken('late'))).toBe(401);
    expect(await idp.asked()).toEqual(PROVIDER_READ);
  }
});

describe('down from the start', () => {
  it('503 for a token that might be good, 401 for what never is', async () => {
    const token = createToken();
    await stopProvider();
    expect(await statusOf(token)).toBe(503);
    expect(await statusOf('header.payload.signature')).toBe(401);
    expect((await answerTo(authenticate)).status).toBe(401);
    expect((await answerTo(authenticate, 'Basic eDp5')).status).toBe(401);
    expect(reasons()).toEqual(['discovery document: it cannot be reached (ECONNREFUSED)']);
  });

  it('is told once, however many ask', async () => {
    const token = createToken();
    await stopProvider();
    expect(await Promise.all(Array.from({ length: 20 }, () => statusOf(token)))).toEqual(Array(20).fill(503));
    clock.advance(HOUR);
    expect(await statusOf(token)).toBe(503);
    expect(faults).toHaveLength(1);
  });

  // The test is retried, because another process may use the port between the probe and the start.
  it('and lets people in as soon as it is there', { retry: 2 }, async () => {
    const port = await freePort();
    connect({ issuer: `http://127.0.0.1:${port}`, audience: AUDIENCE });
    const claims = { ...idp.claims(), iss: `http://127.0.0.1:${port}` };
    expect(await statusOf(idp.forge(claims))).toBe(503);
    const lateProvider = await startIdp({ port });
    expect(await statusOf(lateProvider.forge(lateProvider.claims()))).toBe(200);
    await lateProvider.stop();
  });
});

describe('down later', () => {
  it('keys that are known go on, for hours and days; others are 401 and not 503', async () => {
    const [token, unknown] = [createToken(), createToken('new')];
    expect(await statusOf(token)).toBe(200);
    await stopProvider();
    expect(await statusOf(token)).toBe(200);
    expect(await statusOf(unknown)).toBe(401);
    for (const ms of [11 * 60_000, HOUR, 30 * DAY]) {
      clock.advance(ms);
      expect(await statusOf(token)).toBe(200);
      expect(await statusOf(unknown)).toBe(401);
    }
    expect(reasons()).toEqual(['discovery document: it cannot be reached (ECONNREFUSED)']);
  });

  it('and hanging: who is known waits at most once in half a minute', async () => {
    const token = createToken();
    expect(await statusOf(token)).toBe(200);
    await idp.fault({ fault: 'hang' });
    clock.advance(2 * HOUR);
    expect(await statusOf(token)).toBe(200);
    await idp.asked();
    for (let i = 0; i < 10; i += 1) expect(await statusOf(token)).toBe(200);
    // Waiting would send a request to the provider: only the first answer above waited.
    expect(await idp.asked()).toEqual([]);
    expect(reasons()).toEqual(['discovery document: it did not answer in time']);
  });

  it('and back with other keys', async () => {
    const before = createToken();
    expect(await statusOf(before)).toBe(200);
    await idp.fault({ fault: 'error' });
    clock.advance(2 * HOUR);
    expect(await statusOf(before)).toBe(200);
    await idp.fault(null);
    await idp.rotate();
    expect(await statusOf(createToken())).toBe(200);
    expect(await statusOf(before)).toBe(401);
  });
});

describe('answering badly from the start: 503, and why', () => {
  const keysOf = (jwk: object): string => JSON.stringify({ keys: [jwk] });
  const metadata = (members: object): string =>
    JSON.stringify({ issuer: idp.issuer, jwks_uri: `${idp.issuer}/jwks`, ...members });

  it.each([
    ['hang', 'jwks', 'JWKS: it did not answer in time'],
    ['drip', 'discovery', 'discovery document: it did not answer in time'],
    ['drip', 'jwks', 'JWKS: it did not answer in time'],
    ['error', 'discovery', 'discovery document: it answered 500 and not 200'],
    ['error', 'jwks', 'JWKS: it answered 500 and not 200'],
    ['huge', 'discovery', 'discovery document: the document is too large'],
    ['huge', 'jwks', 'JWKS: the document is too large'],
  ] as const)('%s, of %s', async (fault, only, reason) => {
    await idp.fault({ fault, only });
    expect(await statusOf(createToken())).toBe(503);
    expect(reasons()).toEqual([reason]);
  });

  it.each(['discovery', 'jwks'] as const)('a redirect of the %s is not followed', async (only) => {
    const other = await startIdp();
    await idp.fault({ fault: 'redirect', target: `${other.issuer}/jwks`, only });
    expect(await statusOf(createToken())).toBe(503);
    expect(reasons()[0]).toContain('it answered 302 and not 200');
    expect(await other.asked()).toEqual([]);
    await other.stop();
  });

  it.each([
    ['HTML', '<!doctype html>'],
    ['half of it', '{"issuer":'],
    ['nothing', ''],
    ['null', 'null'],
    ['an object of nothing', '{}'],
    ['a name that is a list', '{"issuer":["x"],"jwks_uri":"x"}'],
    ['deep nesting', '['.repeat(100_000)],
  ])('%s for a discovery document', async (_name, target) => {
    await idp.fault({ fault: 'body', target, only: 'discovery' });
    expect(await statusOf(createToken())).toBe(503);
    expect(reasons()[0]).toMatch(/^discovery document: (it cannot be read|it names no issuer)/);
  });

  it.each([
    ['of another provider', () => metadata({ issuer: 'https://id.evil.example' }), /its issuer is not/],
    ['with a slash too many', () => metadata({ issuer: `${idp.issuer}/` }), /its issuer is not/],
    ['without keys', () => metadata({ jwks_uri: undefined }), /names no issuer and jwks_uri/],
    ['with keys by plain http', () => metadata({ jwks_uri: 'http://192.0.2.1/jwks' }), /^JWKS: .*not public/],
    ['with keys in a file', () => metadata({ jwks_uri: 'file:///etc/passwd' }), /^JWKS: only https/],
    ['with an address that is none', () => metadata({ jwks_uri: 'jwks' }), /^JWKS: it cannot be/],
  ])('a discovery document %s', async (_name, target, reason) => {
    await idp.fault({ fault: 'body', target: target(), only: 'discovery' });
    expect(await statusOf(createToken())).toBe(503);
    expect(reasons()[0]).toMatch(reason);
  });

  it.each([
    ['garbage', () => '{"keys": <html>', /JWKS: it cannot be read/],
    ['no list', () => '{"keys":{}}', /JWKS: it is not a set/],
    ['a list too long', () => JSON.stringify({ keys: Array(101).fill({}) }), /JWKS: it is not a set/],
    ['no keys', () => '{"keys":[]}', /JWKS: it holds no/],
    ['a key of another kind', () => keysOf({ kty: 'oct', k: 'AAAA', kid: 'x' }), /JWKS: it holds no/],
    ['a key to encrypt', () => keysOf({ ...publicJwk(idp.keys.ES256), use: 'enc' }), /JWKS: it holds no/],
    ['a private key', () => keysOf(idp.keys.ES256), /JWKS: it holds no/],
  ])('%s for a JWKS', async (_name, target, reason) => {
    await idp.fault({ fault: 'body', target: target(), only: 'jwks' });
    expect(await statusOf(createToken())).toBe(503);
    expect(reasons()[0]).toMatch(reason);
  });
});

it('a process that has authenticated somebody may end: nothing holds it', async () => {
  const module = fileURLToPath(new URL('../../src/rights/oidc-service.ts', import.meta.url));
  const script = `
    const { createAuthenticator } = await import(${JSON.stringify(module)});
    const settings = ${JSON.stringify(oidcSettings(idp))};
    const caller = await createAuthenticator(settings, Date.now, () => {})(${JSON.stringify(`Bearer ${createToken()}`)});
    process.stdout.write(caller.sub);`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
  expect(stdout).toBe('user-1');
});
