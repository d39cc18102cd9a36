import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Authenticate,
  createAuthenticator,
  missingOidcSettings,
  type OidcSettings,
} from '../../src/rights/oidc.ts';
import { AUDIENCE, type Idp, startIdp } from '../support/oidc.ts';
import { answerTo, oidcSettings } from './support.ts';

/** Runs the authenticator with tokens of a real identity provider. */

let idp: Idp;
beforeAll(async () => {
  idp = await startIdp();
});
afterAll(() => idp.stop());

const faults: unknown[] = [];
const authenticator = (settings: Partial<OidcSettings> = {}): Authenticate =>
  createAuthenticator(oidcSettings(idp, settings), Date.now, (error) => faults.push(error));

describe('a token of the provider', () => {
  it.each(['ES256', 'RS256'] as const)('is a caller when it is signed by %s', async (alg) => {
    const token = await idp.token({ sub: 'anna', gpd_role: 'subject', gpd_tenant: 'acme' }, { alg });
    expect(await authenticator()(`Bearer ${token}`)).toEqual({
      issuer: idp.issuer,
      sub: 'anna',
      roles: new Set(['subject']),
      tenant: 'acme',
      visitor: null,
      principal: 'anna',
    });
    expect(faults).toEqual([]);
  });
});

describe('without a configuration', () => {
  it.each([
    ['nothing', {}, ['GPD_OIDC_ISSUER', 'GPD_OIDC_AUDIENCE']],
    ['no audience', { oidc_issuer: 'http://127.0.0.1:1' }, ['GPD_OIDC_AUDIENCE']],
    ['no issuer', { oidc_audience: AUDIENCE }, ['GPD_OIDC_ISSUER']],
  ])('%s: 401, and what to set', async (_name, changes, missingNames) => {
    const unset = { ...oidcSettings(idp), oidc_issuer: null, oidc_audience: null, ...changes };
    const token = await idp.token({ gpd_role: 'dpo', gpd_tenant: 'acme' });
    const answer = await answerTo(
      createAuthenticator(unset, Date.now, () => {}),
      `Bearer ${token}`,
    );
    expect(answer).toMatchObject({ status: 401, code: 'unauthenticated', challenge: 'Bearer' });
    expect(answer.details).toEqual(missingOidcSettings(unset));
    expect(answer.details).toHaveLength(missingNames.length);
    for (const [i, name] of missingNames.entries()) expect(answer.details[i]).toContain(name);
  });
});
