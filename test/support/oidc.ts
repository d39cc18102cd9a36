import { randomBytes } from 'node:crypto';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JWK } from 'jose';
import type { Configuration } from 'oidc-provider';
import { createKey, type Part, signJws } from './jws.ts';

/** Starts a real identity provider (oidc-provider) with faults in front of it. The test knows its private keys. */

export const AUDIENCE = 'https://gpd.test/privacy';
const CLIENT = { id: 'harness', secret: randomBytes(24).toString('base64url') };
const HUGE_BYTES = 10 * 2 ** 20;
/** Like most providers: the scope `profile` contains the name, and in the code flow only userinfo returns it. */
const PROFILE: readonly string[] = ['name', 'preferred_username'];
/** With these request headers of the token endpoint a test chooses the content of a token. */
const CLAIMS_HEADER = 'x-test-claims';
const ALG_HEADER = 'x-test-alg';

type Alg = 'ES256' | 'RS256';
type Keys = Readonly<Record<Alg, JWK>>;

/**
 * The provider answers every request with this fault: `hang` does not answer, `drip` never ends, `redirect`
 * leads to `target`, `body` answers 200 with `target`, and `huge` answers ten megabytes of JSON.
 */
export interface FaultRule {
  readonly fault: 'hang' | 'drip' | 'redirect' | 'body' | 'huge' | 'error';
  readonly target?: string;
  /** The fault only concerns this address; by default it concerns all. */
  readonly only?: 'jwks' | 'discovery' | 'userinfo';
}

export interface IdpOptions {
  /** A fixed port, for a provider that is started after the server that needs it. */
  readonly port?: number;
  /** Claims by account, for the authorization-code flow. */
  readonly accounts?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Clients of the authorization-code flow, by their redirect address. */
  readonly clients?: readonly {
    readonly id: string;
    readonly secret: string;
    readonly redirectUri: string;
  }[];
  /** Claims are in the ID token; otherwise only at userinfo (OIDC core section 5.4). */
  readonly claimsInIdToken?: boolean;
  /** The provider has an end-session endpoint, unless this is false. */
  readonly signsOut?: boolean;
}

export interface Idp {
  readonly issuer: string;
  readonly audience: string;
  /** The GPD_OIDC_* settings of a server that trusts this provider. */
  readonly settings: Readonly<Record<string, string>>;
  /** The private JWKs that the provider currently signs with. */
  readonly keys: Keys;
  /** Requests a token from the token endpoint; the claims are added to the provider's, or replace them. */
  token(claims: Readonly<Record<string, unknown>>, options?: { readonly alg?: Alg }): Promise<string>;
  /** Builds a token by hand, signed with a current key; undefined members of the header are left out. */
  forge(claims: Part, header?: Readonly<Record<string, unknown>>, alg?: Alg): string;
  /** Returns the claims of an acceptable token: iss, aud, sub, iat, exp and a role. */
  claims(more?: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** Replaces the keys; the old ones are no longer published unless `keepOld` is set. */
  rotate(options?: { readonly keepOld?: boolean }): Promise<void>;
  fault(rule: FaultRule | null): Promise<void>;
  /** Returns the paths of all requests since the last call. */
  asked(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

let rsaKey: Promise<JWK> | undefined;
/** Creating an RSA key is slow, so each generation of this process has the same one under another name. */
async function keysOf(generation: number): Promise<Keys> {
  rsaKey ??= createKey('RS256');
  return {
    ES256: { ...(await createKey('ES256')), kid: `ec-${generation + 1}` },
    RS256: { ...(await rsaKey), kid: `rsa-${generation + 1}` },
  };
}

const clientsOf = ({ clients = [] }: IdpOptions): NonNullable<Configuration['clients']> => [
  {
    client_id: CLIENT.id,
    client_secret: CLIENT.secret,
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
  },
  ...clients.map(({ id, secret, redirectUri }) => ({
    client_id: id,
    client_secret: secret,
    grant_types: ['authorization_code'],
    redirect_uris: [redirectUri],
    post_logout_redirect_uris: [redirectUri.replace('/callback', '/signed-out')],
    response_types: ['code' as const],
  })),
];

function createConfiguration(options: IdpOptions, keys: readonly JWK[]): Configuration {
  const { accounts = {} } = options;
  const claims = [...new Set(Object.values(accounts).flatMap((account) => Object.keys(account)))];
  return {
    jwks: { keys } as NonNullable<Configuration['jwks']>,
    clients: clientsOf(options),
    cookies: { keys: ['only-for-tests'] },
    ttl: { ClientCredentials: 600, AccessToken: 600 },
    // A header of the test adds claims; the provider sets the signature, iss, aud, iat, exp and jti.
    formats: {
      customizers: {
        jwt: (ctx, _token, jwt) => {
          const text = Buffer.from(ctx.get(CLAIMS_HEADER), 'base64url').toString();
          Object.assign(jwt.payload, text === '' ? {} : JSON.parse(text));
        },
      },
    },
    extraTokenClaims: (_ctx, token) => ({
      ...('accountId' in token ? accounts[token.accountId ?? ''] : undefined),
    }),
    findAccount: (_ctx, accountId) => ({
      accountId,
      claims: () => ({ ...accounts[accountId], sub: accountId }),
    }),
    claims: { openid: ['sub', ...claims.filter((name) => !PROFILE.includes(name))], profile: [...PROFILE] },
    conformIdTokenClaims: !options.claimsInIdToken,
    features: {
      rpInitiatedLogout: { enabled: options.signsOut ?? true },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // A sign-in of the console requests no API, so its access token is only for userinfo.
        defaultResource: (_ctx, client) =>
          client.clientId.startsWith('console') ? (undefined as never) : AUDIENCE,
        useGrantedResource: () => true,
        getResourceServerInfo: (ctx) => ({
          scope: 'privacy',
          audience: AUDIENCE,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: ctx.get(ALG_HEADER) === 'RS256' ? 'RS256' : 'ES256' } },
        }),
      },
    },
  };
}

const PATHS = { jwks: '/jwks', discovery: '/.well-known/', userinfo: '/me' } as const;
const concerns = ({ only }: FaultRule, path: string): boolean =>
  only === undefined || path.startsWith(PATHS[only]);

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

export async function startIdp(options: IdpOptions = {}): Promise<Idp> {
  const { default: Provider } = await import('oidc-provider');
  let rule: FaultRule | null = null;
  let provider: RequestListener = (_request, response) => response.writeHead(503).end();
  const requestedPaths: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    requestedPaths.push(path);
    if (rule && concerns(rule, path)) misbehave(rule, response);
    else provider(request, response);
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const publish = (published: readonly JWK[]): void => {
    const callback = new Provider(issuer, createConfiguration(options, published)).callback();
    provider = (request, response) => void callback(request, response);
  };
  let generation = 0;
  let keys = await keysOf(generation);
  publish(Object.values(keys));

  return {
    issuer,
    audience: AUDIENCE,
    settings: { GPD_OIDC_ISSUER: issuer, GPD_OIDC_AUDIENCE: AUDIENCE },
    get keys() {
      return keys;
    },
    async token(claims, { alg = 'ES256' } = {}) {
      const response = await fetch(`${issuer}/token`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString('base64')}`,
          [CLAIMS_HEADER]: Buffer.from(JSON.stringify(claims)).toString('base64url'),
          [ALG_HEADER]: alg,
        },
        body: new URLSearchParams({ grant_type: 'client_credentials', resource: AUDIENCE }),
      });
      const answer = (await response.json()) as { access_token?: string };
      if (answer.access_token === undefined) throw new Error(`no token: ${JSON.stringify(answer)}`);
      return answer.access_token;
    },
    forge: (claims, header = {}, alg = 'ES256') =>
      signJws({ alg, typ: 'at+jwt', kid: keys[alg].kid, ...header }, claims, keys[alg]),
    claims(changes = {}) {
      const now = Math.floor(Date.now() / 1000);
      const registered = { iss: issuer, aud: AUDIENCE, sub: 'user-1', iat: now, exp: now + 300 };
      return { ...registered, gpd_role: 'subject', ...changes };
    },
    async rotate({ keepOld = false } = {}) {
      const old = keepOld ? Object.values(keys) : [];
      generation += 1;
      keys = await keysOf(generation);
      publish([...Object.values(keys), ...old]);
    },
    async fault(newRule) {
      rule = newRule;
    },
    asked: async () => requestedPaths.splice(0),
    async stop() {
      if (!server.listening) return;
      const closed = new Promise((resolve) => void server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
