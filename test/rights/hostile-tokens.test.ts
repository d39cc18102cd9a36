import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectError } from '../support/expect.ts';
import { createHostileTokens } from '../support/hostile-tokens.ts';
import { type Rights, startRights } from './support/rights.ts';

/** The attack suite of test/auth against the running program: refused everywhere, never a 500, nothing in the log. */

let rights: Rights;
let tokens: Awaited<ReturnType<typeof createHostileTokens>>;
beforeAll(async () => {
  rights = await startRights();
  tokens = await createHostileTokens(rights.idp);
});
afterAll(() => rights.stop());

describe.each(['/privacy/contest', '/privacy/contest/resolve', '/privacy/dsar', '/privacy/erase'])(
  '%s',
  (path) => {
    it('refuses every hostile token by 401', async () => {
      expect(tokens.length).toBeGreaterThan(30);
      for (const [name, token] of tokens) {
        const reply = await rights.call(path, {}, token);
        expect({ name, status: reply.status }).toEqual({ name, status: 401 });
        expectError(reply, 'unauthenticated');
      }
    });
  },
);

it('says no token and no claim in the log', () => {
  const logs = rights.gpd.logs();
  for (const [, token] of tokens) {
    if (token.length > 8) expect(logs).not.toContain(token);
    for (const part of token.split('.')) if (part.length > 40) expect(logs).not.toContain(part);
  }
});

it('is 401 with what to set while no identity provider is configured', async () => {
  const { startGpd } = await import('../support/server.ts');
  const { postJson } = await import('../support/http.ts');
  const gpd = await startGpd();
  const reply = await postJson(gpd.url, '/privacy/dsar', {}, { authorization: 'Bearer x' });
  expect(JSON.stringify(expectError(reply, 'unauthenticated'))).toContain('GPD_OIDC_ISSUER');
  await gpd.stop();
});
