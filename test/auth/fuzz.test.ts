import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Authenticate, createAuthenticator } from '../../src/rights/oidc.ts';
import { type Idp, startIdp } from '../support/oidc.ts';
import { fc } from '../support/property.ts';
import { answerTo, oidcSettings } from './support.ts';

/** Random tokens are accepted or get one of the two refusals; answerTo throws any other error. */

let idp: Idp;
let authenticate: Authenticate;
beforeAll(async () => {
  idp = await startIdp();
  authenticate = createAuthenticator(oidcSettings(idp), Date.now, () => {});
});
afterAll(() => idp.stop());

const statusOf = async (authorization: string): Promise<number> =>
  (await answerTo(authenticate, authorization)).status;

it('any text for a header is 401', async () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string().map((token) => `Bearer ${token}`),
    fc
      .tuple(fc.base64String(), fc.base64String(), fc.base64String())
      .map((list) => `Bearer ${list.join('.')}`),
    fc
      .tuple(fc.jsonValue(), fc.jsonValue())
      .map((list) => list.map((value) => Buffer.from(JSON.stringify(value)).toString('base64url')).join('.'))
      .map((token) => `Bearer ${token}.AAAA`),
  );
  await fc.assert(
    fc.asyncProperty(text, async (header) => {
      expect(await statusOf(header)).toBe(401);
    }),
    { numRuns: 1000 },
  );
});

it('any value for a member, signed by the provider, is 401 unless the rest is as it has to be', async () => {
  const anyValue = fc.oneof(fc.jsonValue(), fc.constant(undefined));
  const requiredMembers = ['iss', 'aud', 'exp', 'sub', 'gpd_role'] as const;
  const claims = fc.dictionary(
    fc.constantFrom(...requiredMembers, 'nbf', 'iat', 'gpd_tenant', 'gpd_visitor', 'cnf', 'jti', '__proto__'),
    anyValue,
  );
  const header = fc.dictionary(fc.constantFrom('typ', 'crit', 'b64', 'jwk', 'x5c', 'cty', 'x5t'), anyValue);
  let acceptedCount = 0;
  await fc.assert(
    fc.asyncProperty(claims, header, async (changes, extra) => {
      const all = idp.claims(changes);
      const status = await statusOf(`Bearer ${idp.forge(all, extra)}`);
      expect([200, 401]).toContain(status);
      if (status === 401) return;
      acceptedCount += 1;
      expect(all['iss']).toBe(idp.issuer);
      expect([all['aud']].flat()).toContain(idp.audience);
      expect(all['exp']).toBeGreaterThan(Date.now() / 1000 - 30);
      expect(all['sub']).toMatch(/./);
      expect([all['gpd_role']].flat()).toContain('subject');
      for (const name of ['crit', 'b64', 'jwk', 'x5c']) expect(extra[name]).toBeUndefined();
    }),
    { numRuns: 1000 },
  );
  expect(acceptedCount).toBeGreaterThan(20);
});
