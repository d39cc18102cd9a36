import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import ejs from 'ejs';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import type Provider from 'oidc-provider';
import type { Configuration, interactionPolicy, KoaContextWithOIDC } from 'oidc-provider';
import { readBody } from '../http/request.ts';

/**
 * The demo's identity provider: the library oidc-provider with real keys, endpoints and tokens. Only its
 * sign-in page differs from a real one: the user picks a person, without a password. Nothing outlives the
 * process.
 */

export const DEMO_USERS = [
  { account: 'rosa', name: 'Rosa Reviewer', role: 'reviewer', about: 'answers objections' },
  {
    account: 'remy',
    name: 'Remy Reviewer',
    role: 'reviewer',
    about: 'confirms rulings as the second reviewer',
  },
  { account: 'dora', name: 'Dora Privacy', role: 'dpo', about: 'finds, exports and erases people’s data' },
  {
    account: 'sam',
    name: 'Sam Shopper',
    role: 'subject',
    about: 'a customer; the console refuses customers',
  },
] as const;

const CLIENT_ID = 'console';
const TOKEN_SECONDS = 300;
const MAX_BODY = 1024;

function claimsOf(kid: string, account: string) {
  const user = DEMO_USERS.find((one) => one.account === account);
  return user ? { sub: account, name: user.name, gpd_role: user.role, gpd_tenant: kid } : null;
}

/**
 * Grants the scopes at sign-in: the provider does not ask staff whether their employer's console may know who
 * they are.
 */
async function grantAll(ctx: KoaContextWithOIDC) {
  const { session, client, provider } = ctx.oidc;
  if (!session?.accountId || !client) return undefined;
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
  grant.addOIDCScope('openid profile');
  await grant.save();
  return grant;
}

function configurationOf(
  kid: string,
  baseUrl: string,
  { secret, jwk }: { readonly secret: string; readonly jwk: JWK },
  policy: ReturnType<typeof interactionPolicy.base>,
): Configuration {
  return {
    jwks: { keys: [jwk] } as NonNullable<Configuration['jwks']>,
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: secret,
        redirect_uris: [`${baseUrl}/console/callback`],
        post_logout_redirect_uris: [`${baseUrl}/console/signed-out`],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    claims: { openid: ['sub', 'gpd_role', 'gpd_tenant'], profile: ['name'] },
    findAccount: (_ctx, account) => {
      const claims = claimsOf(kid, account);
      return claims ? { accountId: account, claims: () => ({ ...claims, sub: account }) } : undefined;
    },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}`, policy },
    loadExistingGrant: grantAll,
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: async (ctx, form) => {
          // The form is the library's markup, with its CSRF protection, and no template of gpd takes markup
          // as a value.
          ctx.body = (await renderPage('sign-out')).replace('<!-- form -->', () => form);
        },
      },
    },
    ttl: {
      Session: 8 * 3600,
      Grant: 8 * 3600,
      Interaction: 600,
      AccessToken: TOKEN_SECONDS,
      IdToken: TOKEN_SECONDS,
    },
  };
}

/** Renders a template of views/demo. */
const renderPage = (name: 'sign-in' | 'sign-out', data: object = {}): Promise<string> =>
  ejs.renderFile(fileURLToPath(new URL(`../../views/demo/${name}.ejs`, import.meta.url)), data);

async function readAccount(request: IncomingMessage): Promise<string> {
  const body = await readBody(request, MAX_BODY);
  return new URLSearchParams(String(body ?? '')).get('account') ?? '';
}

/**
 * Signs a person in or shows the page to pick one.
 * @param takeAccount returns the person that the tour chose, once, or ''
 */
async function answerSignIn(
  provider: Provider,
  takeAccount: () => string,
  request: IncomingMessage,
  response: ServerResponse,
) {
  try {
    const { uid } = await provider.interactionDetails(request, response);
    const account = request.method === 'POST' ? await readAccount(request) : takeAccount();
    if (DEMO_USERS.some((user) => user.account === account)) {
      // `select_account` answers the second prompt, which a person who is already signed in gets.
      const result = { login: { accountId: account }, select_account: {} };
      await provider.interactionFinished(request, response, result);
      return;
    }
    const html = await renderPage('sign-in', { action: `/interaction/${uid}`, users: DEMO_USERS });
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' });
    response.end(html);
  } catch {
    response.writeHead(400, { 'content-type': 'text/plain' }).end('This sign-in is over. Start again.');
  }
}

/** Keeps the library's warnings about production out of the demo's output. */
async function withoutWarnings<T>(work: () => Promise<T>): Promise<T> {
  const before = { ...globalThis.console };
  const nothing = (): void => {};
  Object.assign(globalThis.console, { warn: nothing, info: nothing });
  try {
    return await work();
  } finally {
    Object.assign(globalThis.console, before);
  }
}

/** @param baseUrl of the demo's gpd, whose console is the one client */
export async function startDemoIdp(kid: string, baseUrl: string) {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const jwk: JWK = { ...(await exportJWK(privateKey)), kid: 'demo', alg: 'ES256', use: 'sig' };
  const secret = randomBytes(32).toString('base64url');
  let listener = (_request: IncomingMessage, response: ServerResponse): void =>
    void response.writeHead(503).end();
  const server = createServer((request, response) => listener(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = await withoutWarnings(async () => {
    const { default: Oidc, interactionPolicy } = await import('oidc-provider').catch(() => {
      throw new Error('this installation has no demo: run `npm run demo` in a clone of the repository');
    });
    const policy = interactionPolicy.base();
    policy.add(new interactionPolicy.Prompt({ name: 'select_account', requestable: true }), 0);
    return new Oidc(issuer, configurationOf(kid, baseUrl, { secret, jwk }, policy));
  });
  const protocol = provider.callback();
  let nextAccount = '';
  const takeNext = (): string => {
    const account = nextAccount;
    nextAccount = '';
    return account;
  };
  listener = (request, response) => {
    const isSignInPage = request.url?.startsWith('/interaction/') === true;
    void (isSignInPage ? answerSignIn(provider, takeNext, request, response) : protocol(request, response));
  };
  return {
    issuer,
    audience: baseUrl,
    clientId: CLIENT_ID,
    clientSecret: secret,
    /**
     * @param at the time of the server, in milliseconds
     * @returns a token with which a program acts for this person
     */
    token(account: string, at: number): Promise<string> {
      const seconds = Math.floor(at / 1000);
      return new SignJWT({ ...claimsOf(kid, account) })
        .setProtectedHeader({ alg: 'ES256', kid: 'demo' })
        .setIssuer(issuer)
        .setAudience(baseUrl)
        .setIssuedAt(seconds)
        .setExpirationTime(seconds + TOKEN_SECONDS)
        .sign(privateKey);
    },
    /**
     * Signs this person in at the next request, without a question: any visitor of the demo may act as any of
     * them.
     */
    signInNext(account: string): void {
      nextAccount = account;
    },
  };
}
