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

/**
 * The process of an identity provider for tests: panva's
 * oidc-provider with faults in front of it. oidc.ts starts it.
 */

type Jwks = NonNullable<Configuration['jwks']>;
type SigningAlgorithm = 'ES256' | 'RS256';

const HUGE_BYTES = 10 * 2 ** 20;

function parseClaims(text: string): Record<string, unknown> {
  return text === ''
    ? {}
    : (JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>);
}

const PROFILE: readonly string[] = ['name', 'preferred_username'];

function createConfiguration(setup: IdpSetup, jwks: IdpSetup['jwks']): Configuration {
  const claims = [...new Set(Object.values(setup.accounts).flatMap((account) => Object.keys(account)))];
  const resource = { scope: 'privacy', audience: setup.audience, accessTokenFormat: 'jwt' } as const;
  return {
    jwks: { keys: jwks } as Jwks,
    clients: setup.clients.map((client) => ({ ...client }) as Record<string, unknown>) as never,
    cookies: { keys: ['only-for-tests'] },
    ttl: { ClientCredentials: 600, AccessToken: 600 },
    // A header of the test adds claims; the provider sets the signature, iss, aud, iat, exp and jti.
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
    // Like most providers: the scope `profile` contains the
    // name, and in the code flow only userinfo returns it.
    claims: { openid: ['sub', ...claims.filter((name) => !PROFILE.includes(name))], profile: [...PROFILE] },
    conformIdTokenClaims: !setup.claimsInIdToken,
    features: {
      rpInitiatedLogout: { enabled: setup.signsOut },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // A sign-in of the console requests no API, so its access token is only for userinfo.
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
  const paths = { jwks: '/jwks', discovery: '/.well-known/', userinfo: '/me' } as const;
  return only === undefined || path.startsWith(paths[only]);
}

/** Answers a request with the fault; with `hang` it does not answer. */
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
const answerNotStarted: RequestListener = (_request, response) => response.writeHead(503).end();
let provider = answerNotStarted;
let rule: FaultRule | null = null;
const requestedPaths: string[] = [];

const server = createServer((request, response) => {
  const path = request.url ?? '';
  requestedPaths.push(path);
  if (rule && concerns(rule, path)) misbehave(rule, response);
  else provider(request, response);
});

function send(message: FromIdp): void {
  process.send?.(message);
}

function publish(jwks: IdpSetup['jwks']): void {
  if (!setup) throw new Error('not started');
  const callback = new Provider(issuer, createConfiguration(setup, jwks)).callback();
  provider = (request, response) => void callback(request, response);
}

function start(newSetup: IdpSetup): void {
  setup = newSetup;
  server.listen(newSetup.port, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    issuer = `http://127.0.0.1:${port}`;
    publish(newSetup.jwks);
    send({ done: 'start', port });
  });
}

/** Stops as if the process had ended, so that the next provider can start in it. */
function stop(): void {
  server.close(() => send({ done: 'stop' }));
  server.closeAllConnections();
  [setup, rule, provider] = [null, null, answerNotStarted];
  requestedPaths.length = 0;
}

process.on('message', (message: ToIdp) => {
  if (message.do === 'start') start(message.setup);
  else if (message.do === 'stop') stop();
  else if (message.do === 'rotate') {
    publish(message.jwks);
    send({ done: 'rotate' });
  } else if (message.do === 'fault') {
    rule = message.rule;
    send({ done: 'fault' });
  } else send({ done: 'asked', asked: requestedPaths.splice(0) });
});
// The test process has ended.
process.on('disconnect', () => process.exit(0));
