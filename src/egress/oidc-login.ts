import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  type CustomFetchOptions,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'openid-client';
import type { LoginBegun, Switching, VerifiedLogin } from '../auth/credentials.ts';
import { LoginRefused } from '../auth/credentials.ts';
import { hasBegun, readClaims, readJws } from '../auth/tokens.ts';
import { type Clock, MINUTE, SECOND } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { Unavailable } from '../lib/errors.ts';
import { bound } from '../lib/functions.ts';
import { isLoopback } from '../lib/ip.ts';
import { anywhere, call, onlyLoopback, readBody } from './send.ts';

/** The console's sign-in, by openid-client: every byte to the identity provider passes the guard. */

export interface LoginOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: () => string;
  /** Where the provider sends people whom it signed out. */
  readonly signedOutUri: () => string;
  readonly random: Random;
  readonly clock: Clock;
  /** Milliseconds that no change of the clock touches. */
  readonly monotonic?: () => number;
  /** Told when the provider cannot be read. */
  readonly onFault: (error: unknown) => void;
}

const SCOPE = 'openid profile';
const TIMEOUT_SECONDS = 5;
const MAX_BYTES = 262_144;
/** Discovery is read again after this time. */
const FRESH_MS = 10 * MINUTE;
/** After a failure the provider is left alone for so long, however many people knock. */
const COOLDOWN_MS = SECOND;

/** The operator names the provider, which may lie inside the perimeter; plain http is for this machine alone. */
async function guardedFetch(address: string, options: CustomFetchOptions): Promise<Response> {
  const { method, headers, body, signal = AbortSignal.timeout(TIMEOUT_SECONDS * SECOND) } = options;
  const text = typeof body === 'string' || body instanceof URLSearchParams ? String(body) : undefined;
  const request = { method, headers, body: text, signal, allow: anywhere, allowPlain: onlyLoopback };
  return call(address, request, async (response) => {
    const bytes = await readBody(response, MAX_BYTES);
    const { statusCode: status = 0, headers: answered } = response;
    const pairs = Object.entries(answered).flatMap(([name, value]): [string, string][] =>
      [value ?? []].flat().map((one) => [name, one]),
    );
    return new Response(bytes.length === 0 ? null : new Uint8Array(bytes), { status, headers: pairs });
  });
}

/** Basic unless the provider lists its methods and that one is not among them (OIDC Discovery section 3). */
function clientAuth(secret: string): ClientAuth {
  const basic = ClientSecretBasic(secret);
  const post = ClientSecretPost(secret);
  return (as, ...rest) => {
    const methods = as.token_endpoint_auth_methods_supported;
    const takesBasic = methods === undefined || methods.includes('client_secret_basic');
    return takesBasic ? basic(as, ...rest) : post(as, ...rest);
  };
}

function refusalOf(error: unknown): LoginRefused | null {
  if (error instanceof AuthorizationResponseError) {
    return new LoginRefused(error.error === 'access_denied' ? 'cancelled' : 'provider-refused');
  }
  if (error instanceof ResponseBodyError || error instanceof WWWAuthenticateChallengeError)
    return new LoginRefused('provider-refused');
  const { code } = error as { code?: unknown };
  const claims = ['OAUTH_JWT_CLAIM_COMPARISON_FAILED', 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED'];
  if (typeof code !== 'string') return null;
  if (code === 'OAUTH_INVALID_RESPONSE' || claims.includes(code)) return new LoginRefused('token');
  return null;
}

/** A provider that lists what it knows is asked for nothing else (Initiating User Registration 1.0 names the list). */
function promptOf(config: Configuration, wanted: Switching): Switching {
  const known = config.serverMetadata()['prompt_values_supported'];
  return Array.isArray(known) && !known.includes(wanted) ? 'login' : wanted;
}

interface Login {
  readonly options: LoginOptions;
  readonly monotonic: () => number;
  known: { readonly config: Promise<Configuration>; readonly at: number } | null;
  failedAt: number;
}

async function discover({ issuer, clientId, clientSecret }: LoginOptions): Promise<Configuration> {
  const plain = issuer.startsWith('http:');
  const config = await discovery(new URL(issuer), clientId, undefined, clientAuth(clientSecret), {
    timeout: TIMEOUT_SECONDS,
    [customFetch]: guardedFetch,
    // The settings allow an http issuer on a loopback address only.
    execute: plain ? [allowInsecureRequests, enableNonRepudiationChecks] : [enableNonRepudiationChecks],
  });
  // As /privacy takes it: or one provider could speak for another.
  if (config.serverMetadata().issuer !== issuer) throw new Error('it is not the issuer that was configured');
  return config;
}

async function configuration(login: Login): Promise<Configuration> {
  const { options, monotonic } = login;
  const now = monotonic();
  if (!login.known || now - login.known.at > FRESH_MS) {
    if (now - login.failedAt < COOLDOWN_MS) throw new Unavailable('the identity provider cannot be read');
    login.known = { config: discover(options), at: now };
  }
  try {
    return await login.known.config;
  } catch (error) {
    login.known = null;
    login.failedAt = monotonic();
    options.onFault(error);
    throw new Unavailable('the identity provider cannot be read', 5, { cause: error });
  }
}

/**
 * The URL to send the browser to.
 * @param switching the person wants to be somebody else: the provider must not answer for the person already signed in there
 * @throws {Unavailable} when the provider cannot be read
 */
async function begin(login: Login, switching: Switching | null): Promise<LoginBegun & { url: string }> {
  const { random, redirectUri } = login.options;
  const config = await configuration(login);
  // RFC 7636 section 4.1: 32 bytes make a verifier of 43 characters.
  const secret = (): string => random(32).toString('base64url');
  const begun = { state: secret(), nonce: secret(), verifier: secret() };
  const url = buildAuthorizationUrl(config, {
    redirect_uri: redirectUri(),
    scope: SCOPE,
    state: begun.state,
    nonce: begun.nonce,
    code_challenge: await calculatePKCECodeChallenge(begun.verifier),
    code_challenge_method: 'S256',
    ...(switching === null ? {} : { prompt: promptOf(config, switching) }),
  });
  return { ...begun, url: url.href };
}

async function exchange(
  config: Configuration,
  clock: Clock,
  callback: URL,
  begun: LoginBegun,
): Promise<VerifiedLogin> {
  const tokens = await authorizationCodeGrant(config, callback, {
    pkceCodeVerifier: begun.verifier,
    expectedState: begun.state,
    expectedNonce: begun.nonce,
    idTokenExpected: true,
  });
  const idToken = tokens.id_token ?? '';
  // openid-client takes every algorithm that the provider announces; gpd takes ES256 and RS256.
  const read = readJws(idToken);
  const claims = typeof read === 'string' ? null : readClaims(read.payload);
  // openid-client does not compare iat with the time.
  if (!claims || !hasBegun(claims, clock() / SECOND)) throw new LoginRefused('token');
  return {
    claims,
    idToken,
    more: async () => {
      if (config.serverMetadata().userinfo_endpoint === undefined) return claims;
      const info = await fetchUserInfo(config, tokens.access_token, String(claims['sub']));
      // What was signed wins.
      return { ...info, ...claims };
    },
  };
}

/**
 * The verified claims of who came back.
 * @throws {LoginRefused} the answer is not one to this sign-in, or the person or the provider said no
 * @throws {Unavailable} when the provider cannot be reached
 */
async function finish(login: Login, callback: URL, begun: LoginBegun): Promise<VerifiedLogin> {
  const config = await configuration(login);
  try {
    return await exchange(config, login.options.clock, callback, begun);
  } catch (error) {
    if (error instanceof LoginRefused) throw error;
    const refusal = refusalOf(error);
    if (refusal) throw refusal;
    // Keys may have changed: the next sign-in reads everything again.
    login.known = null;
    login.options.onFault(error);
    throw new Unavailable('the identity provider cannot be reached', 5, { cause: error });
  }
}

/** The browser is sent there: https, or this machine. */
const mayLead = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));

/**
 * Where the browser ends its session at the provider, too (RP-Initiated Logout 1.0); null: the provider has no such
 * address, or cannot be read now.
 */
async function endSession(login: Login, idToken: string | null): Promise<string | null> {
  const config = await configuration(login).catch(() => null);
  const address = config?.serverMetadata().end_session_endpoint;
  if (!config || address === undefined || !mayLead(new URL(address))) return null;
  const hint = idToken === null ? {} : { id_token_hint: idToken };
  const parameters = { post_logout_redirect_uri: login.options.signedOutUri(), ...hint };
  return buildEndSessionUrl(config, parameters).href;
}

export type LoginProvider = ReturnType<typeof makeLoginProvider>;

/** OIDC authorization code flow with PKCE (RFC 6749 section 4.1, RFC 7636, RFC 9700). */
export function makeLoginProvider(options: LoginOptions) {
  const { monotonic = () => performance.now() } = options;
  const login: Login = { options, monotonic, known: null, failedAt: Number.NEGATIVE_INFINITY };
  return bound(login, { begin, finish, endSession });
}
