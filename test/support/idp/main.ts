import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider, { type Configuration } from 'oidc-provider';
import {
  ALG_HEADER,
  CLAIMS_HEADER,
  type FaultRule,
  type FromIdp,
  type IdpSetup,
  type ToIdp,
} from './messages.ts';

/** The process of an identity provider for tests: panva's oidc-provider, and faults in front of it. */

type Jwks = NonNullable<Configuration['jwks']>;
type SigningAlgorithm = 'ES256' | 'RS256';

const HUGE_BYTES = 10 * 2 ** 20;

function parseClaims(text: string): Record<string, unknown> {
  return text === ''
    ? {}
    : (JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>);
}

const PROFILE: readonly string[] = ['name', 'preferred_username'];

function configurationOf(setup: IdpSetup, jwks: IdpSetup['jwks']): Configuration {
  const claims = [...new Set(Object.values(setup.accounts).flatMap((account) => Object.keys(account)))];
  const resource = { scope: 'privacy', audience: setup.audience, accessTokenFormat: 'jwt' } as const;
  return {
    jwks: { keys: jwks } as Jwks,
    clients: setup.clients.map((client) => ({ ...client }) as Record<string, unknown>) as never,
    cookies: { keys: ['only-for-tests'] },
    ttl: { ClientCredentials: 600, AccessToken: 600 },
    // Asked with a header of the test; the signature, iss, aud, iat, exp and jti are the provider's own.
    formats: {
      customizers: {
        jwt: (ctx, _token, jwt) => {
          Object.assign(jwt.payload, parseClaims(ctx.get(CLAIMS_HEADER)));
        },
      },
    },
    extraTokenClaims: (_ctx, token) => {
      const account = 'accountId' in token ? (token.accountId ?? '') : '';
      return { ...setup.accounts[account] };
    },
    findAccount: (_ctx, accountId) => ({
      accountId,
      claims: () => ({ ...setup.accounts[accountId], sub: accountId }),
    }),
    // As providers have it: a name belongs to the scope `profile`, and in the code flow it is at userinfo alone.
    claims: { openid: ['sub', ...claims.filter((name) => !PROFILE.includes(name))], profile: [...PROFILE] },
    conformIdTokenClaims: !setup.claimsInIdToken,
    features: {
      rpInitiatedLogout: { enabled: setup.signsOut },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // A sign-in of the console asks for no API: its access token is for userinfo alone.
        defaultResource: (_ctx, client) =>
          client.clientId.startsWith('console') ? (undefined as never) : setup.audience,
        useGrantedResource: () => true,
        getResourceServerInfo: (ctx) => {
          const alg: SigningAlgorithm = ctx.get(ALG_HEADER) === 'RS256' ? 'RS256' : 'ES256';
          return { ...resource, jwt: { sign: { alg } } };
        },
      },
    },
  };
}

function concerns({ only }: FaultRule, path: string): boolean {
  const begins = { jwks: '/jwks', discovery: '/.well-known/', userinfo: '/me' } as const;
  return only === undefined || path.startsWith(begins[only]);
}

/** Answers a request as the fault has it; a request that hangs gets none. */
function misbehave({ fault, target = '' }: FaultRule, response: ServerResponse): void {
  const json = { 'content-type': 'application/json' };
  if (fault === 'redirect') response.writeHead(302, { location: target }).end();
  else if (fault === 'body') response.writeHead(200, json).end(target);
  else if (fault === 'error') response.writeHead(500, json).end('{"error":"server_error"}');
  else if (fault === 'huge') response.writeHead(200, json).end(`{"keys":["${'x'.repeat(HUGE_BYTES)}"]}`);
  else if (fault === 'drip') {
    response.writeHead(200, json).write('{"keys":[');
    const timer = setInterval(() => response.write(' '), 100);
    response.once('close', () => clearInterval(timer));
  }
}

let setup: IdpSetup | null = null;
let issuer = '';
const notYet: RequestListener = (_request, response) => response.writeHead(503).end();
let provider = notYet;
let rule: FaultRule | null = null;
const asked: string[] = [];

const server = createServer((request, response) => {
  const path = request.url ?? '';
  asked.push(path);
  if (rule && concerns(rule, path)) misbehave(rule, response);
  else provider(request, response);
});

function say(message: FromIdp): void {
  process.send?.(message);
}

function publish(jwks: IdpSetup['jwks']): void {
  if (!setup) throw new Error('not started');
  const callback = new Provider(issuer, configurationOf(setup, jwks)).callback();
  provider = (request, response) => void callback(request, response);
}

function start(wanted: IdpSetup): void {
  setup = wanted;
  server.listen(wanted.port, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    issuer = `http://127.0.0.1:${port}`;
    publish(wanted.jwks);
    say({ done: 'start', port });
  });
}

/** As if its process had ended; the next provider may start. */
function stop(): void {
  server.close(() => say({ done: 'stop' }));
  server.closeAllConnections();
  [setup, rule, provider] = [null, null, notYet];
  asked.length = 0;
}

process.on('message', (message: ToIdp) => {
  if (message.do === 'start') start(message.setup);
  else if (message.do === 'stop') stop();
  else if (message.do === 'rotate') {
    publish(message.jwks);
    say({ done: 'rotate' });
  } else if (message.do === 'fault') {
    rule = message.rule;
    say({ done: 'fault' });
  } else say({ done: 'asked', asked: asked.splice(0) });
});
// The test is gone.
process.on('disconnect', () => process.exit(0));
