import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { HOUR, MINUTE } from '../../src/lib/clock.ts';
import { type Authenticate, createAuthenticator } from '../../src/rights/oidc.ts';
import { type Idp, startIdp } from '../support/oidc.ts';
import { answerTo, movableClock, oidcSettings, REASONS } from './support.ts';

/** Tests when gpd notices that a provider has changed its keys. */

const PROVIDER_READ = ['/.well-known/openid-configuration', '/jwks'];
let idp: Idp;
let authenticate: Authenticate;
let clock: ReturnType<typeof movableClock>;
beforeEach(async () => {
  idp ??= await startIdp();
  clock = movableClock();
  authenticate = createAuthenticator(oidcSettings(idp), clock, () => {}, clock);
  await idp.asked();
});
afterAll(() => idp.stop());

const createBearer = (): string =>
  `Bearer ${idp.forge(idp.claims({ exp: Math.floor(Date.now() / 1000) + 86_400 }))}`;
const statusOf = async (authorization: string): Promise<number> =>
  (await answerTo(authenticate, authorization)).status;

describe('keys', () => {
  it('are asked for with the first token that could be one, and then kept', async () => {
    expect(await statusOf('Bearer x.y.z')).toBe(401);
    expect(await statusOf(`Bearer ${idp.forge(idp.claims({ iss: 'https://id.evil.example' }))}`)).toBe(401);
    expect(await idp.asked()).toEqual([]);
    for (let i = 0; i < 20; i += 1) expect(await statusOf(createBearer())).toBe(200);
    expect(await idp.asked()).toEqual(PROVIDER_READ);
  });

  it('are asked for once when many come at the same time', async () => {
    const tokens = Array.from({ length: 50 }, createBearer);
    expect(await Promise.all(tokens.map(statusOf))).toEqual(tokens.map(() => 200));
    expect(await idp.asked()).toEqual(PROVIDER_READ);
  });
});

describe('a rotation', () => {
  it('is noticed by the first token of the new key, at once and again and again', async () => {
    expect(await statusOf(createBearer())).toBe(200);
    for (let i = 0; i < 3; i += 1) {
      const before = createBearer();
      await idp.rotate();
      expect(await statusOf(`Bearer ${await idp.token({ gpd_role: 'dpo' })}`)).toBe(200);
      expect(await statusOf(before)).toBe(401);
    }
  });

  it('that keeps the old key refuses nobody', async () => {
    const before = createBearer();
    expect(await statusOf(before)).toBe(200);
    await idp.rotate({ keepOld: true });
    expect(await statusOf(createBearer())).toBe(200);
    expect(await statusOf(before)).toBe(200);
  });

  it('that nobody uses yet is noticed beside a request after ten minutes', async () => {
    const before = createBearer();
    expect(await statusOf(before)).toBe(200);
    await idp.rotate();
    clock.advance(10 * MINUTE - 1000);
    expect(await statusOf(before)).toBe(200);
    clock.advance(1000);
    expect(await statusOf(before)).toBe(200);
    await expect.poll(() => statusOf(before)).toBe(401);
  });

  it.each([-5 * HOUR, 5 * HOUR])(
    'is noticed after an hour, though the machine’s clock was set by %i ms meanwhile',
    async (ms) => {
      const wall = movableClock();
      authenticate = createAuthenticator(oidcSettings(idp), wall, () => {}, clock);
      const claims = {
        iat: Math.floor(Date.now() / 1000) - 86_400,
        exp: Math.floor(Date.now() / 1000) + 86_400,
      };
      const before = `Bearer ${idp.forge(idp.claims(claims))}`;
      expect(await statusOf(before)).toBe(200);
      await idp.rotate();
      wall.advance(ms);
      clock.advance(MINUTE);
      expect(await statusOf(before)).toBe(200);
      clock.advance(HOUR - MINUTE);
      expect(await statusOf(before)).toBe(401);
    },
  );

  it('is waited for after an hour: a key that was withdrawn is not believed once more', async () => {
    const before = createBearer();
    expect(await statusOf(before)).toBe(200);
    await idp.rotate();
    clock.advance(HOUR);
    const answer = await answerTo(authenticate, before);
    expect(answer.status).toBe(401);
    expect(answer.details[0]).toMatch(REASONS.signature);
  });
});

it('a hundred kids that nobody knows are two looks at the most, and a known one needs none', async () => {
  expect(await statusOf(createBearer())).toBe(200);
  await idp.asked();
  const unknown = Array.from(
    { length: 100 },
    (_, i) => `Bearer ${idp.forge(idp.claims(), { kid: `k-${i}` })}`,
  );
  const answers = Promise.all(unknown.map(statusOf));
  expect(await statusOf(createBearer())).toBe(200);
  expect(new Set(await answers)).toEqual(new Set([401]));
  expect((await idp.asked()).length).toBeLessThanOrEqual(2 * PROVIDER_READ.length);
});

it('looks are a second apart, however often a stranger asks', async () => {
  expect(await statusOf(createBearer())).toBe(200);
  await idp.asked();
  const start = performance.now();
  for (let i = 0; i < 4; i += 1)
    expect(await statusOf(`Bearer ${idp.forge(idp.claims(), { kid: `k-${i}` })}`)).toBe(401);
  const seconds = (performance.now() - start) / 1000;
  expect((await idp.asked()).length / PROVIDER_READ.length).toBeLessThanOrEqual(Math.ceil(seconds) + 1);
});
