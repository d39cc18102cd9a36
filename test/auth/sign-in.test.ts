import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Authenticate, makeAuthenticator } from '../../src/rights/oidc.ts';
import { type Idp, startIdp } from '../support/oidc.ts';
import { loginAs } from '../support/oidc-login.ts';
import { answerTo, oidcSettings, WHY } from './support.ts';

/** People who sign in at the provider, by authorization code and PKCE. */

const CLIENT = {
  id: 'console',
  secret: 'only-for-tests',
  redirectUri: 'http://127.0.0.1:9/console/callback',
};
let idp: Idp;
let authenticate: Authenticate;
beforeAll(async () => {
  const accounts = {
    anna: { gpd_role: 'subject', gpd_tenant: 'acme', gpd_visitor: 'v-anna' },
    rita: { gpd_role: ['reviewer', 'dpo'], gpd_tenant: 'acme' },
    gast: {},
  };
  idp = await startIdp({ accounts, clients: [CLIENT] });
  authenticate = makeAuthenticator(oidcSettings(idp), Date.now, () => {});
});
afterAll(() => idp.stop());

it('an ID token is no access token: it is for the client', async () => {
  const { id_token } = await loginAs(idp, CLIENT, 'rita');
  const answer = await answerTo(authenticate, `Bearer ${id_token}`);
  expect(answer.status).toBe(401);
  expect(answer.details[0]).toMatch(WHY.audience);
});
