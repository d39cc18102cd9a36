import { beforeEach, expect, it } from 'vitest';
import { EgressRefused } from '../../src/egress/guard.ts';
import { createLoginProvider } from '../../src/egress/oidc-login.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { seededRandom } from '../support/make.ts';
import { startIdp } from '../support/oidc.ts';
import { started } from '../support/started.ts';

/** Every address in the discovery document of a sign-in is called through the guard. */

const idp = started(() => startIdp());
let faults: unknown[];
beforeEach(async () => {
  faults = [];
  await idp.fault(null);
  await idp.asked();
});

const provider = () =>
  createLoginProvider({
    issuer: idp.issuer,
    clientId: 'console',
    clientSecret: 'secret',
    redirectUri: () => 'http://localhost/callback',
    signedOutUri: () => 'http://localhost/signed-out',
    random: seededRandom('login'),
    clock: Date.now,
    onFault: (error) => faults.push(error),
  });

/** Why nothing was sent. */
function refusals(): string[] {
  const found: string[] = [];
  for (let error = faults[0]; error instanceof Error; error = error.cause)
    if (error instanceof EgressRefused) found.push(error.message);
  return found;
}

const metadata = (fields: object): string => {
  const { issuer } = idp;
  const endpoints = { authorization_endpoint: `${issuer}/auth`, jwks_uri: `${issuer}/jwks` };
  return JSON.stringify({ issuer, ...endpoints, token_endpoint: `${issuer}/token`, ...fields });
};

it.each(['http://192.0.2.1/token', 'http://[::ffff:c000:201]/token'])(
  'a token endpoint %s hears nothing of a code',
  async (endpoint) => {
    const target = metadata({ token_endpoint: endpoint });
    await idp.fault({ fault: 'body', only: 'discovery', target });
    const login = provider();
    const attempt = await login.begin(null);
    const callback = new URL(`http://localhost/callback?code=x&state=${attempt.state}`);
    await expect(login.finish(callback, attempt)).rejects.toBeInstanceOf(Unavailable);
    expect(refusals()).toEqual(['the address is not public']);
  },
);

it('a discovery document that is huge is given up', async () => {
  await idp.fault({ fault: 'huge', only: 'discovery' });
  await expect(provider().begin(null)).rejects.toBeInstanceOf(Unavailable);
  expect(refusals()).toEqual(['the document is too large']);
});

it('a redirect of it is not followed', async () => {
  const other = await startIdp();
  await idp.fault({ fault: 'redirect', target: `${other.issuer}/x`, only: 'discovery' });
  await expect(provider().begin(null)).rejects.toBeInstanceOf(Unavailable);
  expect(await other.asked()).toEqual([]);
  await other.stop();
});

it('state, nonce and verifier come from the random source that was handed in', async () => {
  const random = seededRandom('login');
  const secrets = Array.from({ length: 3 }, () => random(32).toString('base64url'));
  const { state, nonce, verifier } = await provider().begin(null);
  expect([state, nonce, verifier]).toEqual(secrets);
  expect(verifier).toMatch(/^[\w-]{43}$/);
});
