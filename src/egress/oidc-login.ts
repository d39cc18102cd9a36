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
import type { LoginChallenge, SignInPrompt, VerifiedLogin } from '../auth/credentials.ts';
import { LoginRefused } from '../auth/credentials.ts';
import { hasBegun, readClaims, readJws } from '../auth/tokens.ts';
import { type Clock, MINUTE, SECOND } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { Unavailable } from '../lib/errors.ts';
import { isLoopback } from '../lib/ip.ts';
import { anywhere, call, onlyLoopback, readBody } from './send.ts';

/**
 * Signs staff in to the console with openid-client; every connection to the identity provider passes the
 * guard.
 */

export interface LoginOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: () => string;
  /** The page to which the provider sends people after sign-out. */
  readonly signedOutUri: () => string;
  readonly random: Random;
  readonly clock: Clock;
  /** Milliseconds that no clock change affects. */
  readonly monotonic?: () => number;
  /** Called when the provider cannot be read. */
  readonly onFault: (error: unknown) => void;
}

const SCOPE = 'openid profile';
const TIMEOUT_SECONDS = 5;
const MAX_BYTES = 262_144;
/** Discovery is read again after this time. */
const FRESH_MS = 10 * MINUTE;
/** After a failure the provider is not called for this long, however many people try. */
const COOLDOWN_MS = SECOND;

/** The operator names the provider, so a private address is allowed; plain http only on this machine. */
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

/** Uses Basic, unless the provider lists its methods without it (OIDC Discovery section 3). */
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

/** Asks a provider only for prompts that it lists (Initiating User Registration 1.0 defines the list). */
function promptOf(config: Configuration, requested: SignInPrompt): SignInPrompt {
  const supported = config.serverMetadata()['prompt_values_supported'];
  return Array.isArray(supported) && !supported.includes(requested) ? 'login' : requested;
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
  // Compared exactly, like /privacy does: otherwise one provider could speak for another.
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
 * The URL to which the browser is sent.
 * @param prompt null: the provider may reuse its session; otherwise the person wants to sign in as somebody
 * else
 * @throws {Unavailable} when the provider cannot be read
 */
async function begin(login: Login, prompt: SignInPrompt | null): Promise<LoginChallenge & { url: string }> {
  const { random, redirectUri } = login.options;
  const config = await configuration(login);
  // RFC 7636 section 4.1: 32 bytes make a verifier of 43 characters.
  const secret = (): string => random(32).toString('base64url');
  const loginState = { state: secret(), nonce: secret(), verifier: secret() };
  const url = buildAuthorizationUrl(config, {
    redirect_uri: redirectUri(),
    scope: SCOPE,
    state: loginState.state,
    nonce: loginState.nonce,
    code_challenge: await calculatePKCECodeChallenge(loginState.verifier),
    code_challenge_method: 'S256',
    ...(prompt === null ? {} : { prompt: promptOf(config, prompt) }),
  });
  return { ...loginState, url: url.href };
}

async function exchange(
  config: Configuration,
  clock: Clock,
  callback: URL,
  loginState: LoginChallenge,
): Promise<VerifiedLogin> {
  const tokens = await authorizationCodeGrant(config, callback, {
    pkceCodeVerifier: loginState.verifier,
    expectedState: loginState.state,
    expectedNonce: loginState.nonce,
    idTokenExpected: true,
  });
  const idToken = tokens.id_token ?? '';
  // openid-client accepts every algorithm that the provider announces; gpd accepts ES256 and RS256.
  const read = readJws(idToken);
  const claims = typeof read === 'string' ? null : readClaims(read.payload);
  // openid-client does not compare iat with the time.
  if (!claims || !hasBegun(claims, clock() / SECOND)) throw new LoginRefused('token');
  return {
    claims,
    idToken,
    fetchUserinfoClaims: async () => {
      if (config.serverMetadata().userinfo_endpoint === undefined) return claims;
      const info = await fetchUserInfo(config, tokens.access_token, String(claims['sub']));
      // Signed claims take precedence.
      return { ...info, ...claims };
    },
  };
}

/**
 * The verified claims of the person who came back.
 * @throws {LoginRefused} the answer does not belong to this sign-in, or the person or the provider refused
 * @throws {Unavailable} when the provider cannot be reached
 */
async function finish(login: Login, callback: URL, loginState: LoginChallenge): Promise<VerifiedLogin> {
  const config = await configuration(login);
  try {
    return await exchange(config, login.options.clock, callback, loginState);
  } catch (error) {
    if (error instanceof LoginRefused) throw error;
    const refusal = refusalOf(error);
    if (refusal) throw refusal;
    // The keys may have changed: the next sign-in reads everything again.
    login.known = null;
    login.options.onFault(error);
    throw new Unavailable('the identity provider cannot be reached', 5, { cause: error });
  }
}

/** Allows https, or this machine: the browser is sent there. */
const mayLead = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));

/**
 * The page that ends the session at the provider too (RP-Initiated Logout 1.0). Null: the provider has none,
 * or cannot be read now.
 */
async function signOutAddress(login: Login, idToken: string | null): Promise<string | null> {
  const config = await configuration(login).catch(() => null);
  const address = config?.serverMetadata().end_session_endpoint;
  if (!config || address === undefined || !mayLead(new URL(address))) return null;
  const hint = idToken === null ? {} : { id_token_hint: idToken };
  const parameters = { post_logout_redirect_uri: login.options.signedOutUri(), ...hint };
  return buildEndSessionUrl(config, parameters).href;
}

export type LoginProvider = ReturnType<typeof createLoginProvider>;

/** OIDC authorization code flow with PKCE (RFC 6749 section 4.1, RFC 7636, RFC 9700). */
export function createLoginProvider(options: LoginOptions) {
  const { monotonic = () => performance.now() } = options;
  const login: Login = { options, monotonic, known: null, failedAt: Number.NEGATIVE_INFINITY };
  return {
    begin: (prompt: SignInPrompt | null) => begin(login, prompt),
    finish: (callback: URL, loginState: LoginChallenge) => finish(login, callback, loginState),
    signOutAddress: (idToken: string | null) => signOutAddress(login, idToken),
  };
}
