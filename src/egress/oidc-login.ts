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
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  ResponseBodyError,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  WWWAuthenticateChallengeError,
} from 'openid-client';
import { type Claims, readClaims, readJws } from '../auth/jwt.ts';
import { LoginRefused } from '../auth/login.ts';
import type { LoginBegun, LoginProvider, Switching, VerifiedLogin } from '../auth/ports.ts';
import { MINUTE, SECOND } from '../lib/clock.ts';
import { Unavailable } from '../lib/errors.ts';

/** The console's sign-in, by openid-client: every byte to the identity provider is limited here. */

export interface LoginOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: () => string;
  /** Where the provider sends people whom it signed out. */
  readonly signedOutUri: () => string;
  /** Told when the provider cannot be read. */
  readonly onFault: (error: unknown) => void;
}

const SCOPE = 'openid profile';
const TIMEOUT_SECONDS = 5;
const MAX_BYTES = 262_144;
/** Discovery is read anew after so long. */
const FRESH_MS = 10 * MINUTE;
/** After a failure the provider is left alone for so long, however many people knock. */
const COOLDOWN_MS = SECOND;

const LOOPBACK = /^(?:localhost|\[::1\]|127(?:\.\d{1,3}){3})$/;

type Fetch = Parameters<typeof fetch>;

/** Plain http is for this machine alone, whatever the discovery document names. */
const mayAsk = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && LOOPBACK.test(hostname));

/** At most MAX_BYTES of an answer. */
async function boundedFetch(address: string, options: object): Promise<Response> {
  if (!mayAsk(new URL(address))) throw new Error('the identity provider names an address that is not https');
  const response = await fetch(address, options as Fetch[1]);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += (chunk as Uint8Array).length;
    if (size > MAX_BYTES) throw new Error('the answer of the identity provider is too large');
    chunks.push(chunk as Uint8Array);
  }
  const { status, headers } = response;
  return new Response(size === 0 ? null : Buffer.concat(chunks), { status, headers });
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

export function makeLoginProvider(options: LoginOptions): LoginProvider {
  const { issuer, clientId } = options;
  let known: { readonly config: Promise<Configuration>; readonly at: number } | null = null;
  let failedAt = Number.NEGATIVE_INFINITY;

  async function discover(): Promise<Configuration> {
    const plain = issuer.startsWith('http:');
    const config = await discovery(new URL(issuer), clientId, undefined, clientAuth(options.clientSecret), {
      timeout: TIMEOUT_SECONDS,
      [customFetch]: boundedFetch,
      // The settings allow an http issuer on a loopback address only.
      execute: plain ? [allowInsecureRequests, enableNonRepudiationChecks] : [enableNonRepudiationChecks],
    });
    // As /privacy takes it: or one provider could speak for another.
    if (config.serverMetadata().issuer !== issuer)
      throw new Error('it is not the issuer that was configured');
    return config;
  }

  async function configuration(): Promise<Configuration> {
    const now = performance.now();
    if (!known || now - known.at > FRESH_MS) {
      if (now - failedAt < COOLDOWN_MS) throw new Unavailable('the identity provider cannot be read');
      known = { config: discover(), at: now };
    }
    try {
      return await known.config;
    } catch (error) {
      known = null;
      failedAt = performance.now();
      options.onFault(error);
      throw new Unavailable('the identity provider cannot be read', 5, { cause: error });
    }
  }

  return {
    async begin(switching) {
      const config = await configuration();
      const begun = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier() };
      const url = buildAuthorizationUrl(config, {
        redirect_uri: options.redirectUri(),
        scope: SCOPE,
        state: begun.state,
        nonce: begun.nonce,
        code_challenge: await calculatePKCECodeChallenge(begun.verifier),
        code_challenge_method: 'S256',
        ...(switching === null ? {} : { prompt: promptOf(config, switching) }),
      });
      return { ...begun, url: url.href };
    },

    async finish(callback: URL, begun: LoginBegun): Promise<VerifiedLogin> {
      const config = await configuration();
      try {
        const tokens = await authorizationCodeGrant(config, callback, {
          pkceCodeVerifier: begun.verifier,
          expectedState: begun.state,
          expectedNonce: begun.nonce,
          idTokenExpected: true,
        });
        // openid-client takes every algorithm that the provider announces; gpd takes ES256 and RS256.
        const read = readJws(tokens.id_token ?? '');
        const claims: Claims | null = typeof read === 'string' ? null : readClaims(read.payload);
        if (!claims) throw new LoginRefused('token');
        return {
          claims,
          idToken: tokens.id_token ?? '',
          more: async () => {
            if (config.serverMetadata().userinfo_endpoint === undefined) return claims;
            const info = await fetchUserInfo(config, tokens.access_token, String(claims['sub']));
            // What was signed wins.
            return { ...info, ...claims };
          },
        };
      } catch (error) {
        if (error instanceof LoginRefused) throw error;
        const refusal = refusalOf(error);
        if (refusal) throw refusal;
        // Keys may have changed: the next sign-in reads everything anew.
        known = null;
        options.onFault(error);
        throw new Unavailable('the identity provider cannot be reached', 5, { cause: error });
      }
    },

    async endSession(idToken) {
      const config = await configuration().catch(() => null);
      const address = config?.serverMetadata().end_session_endpoint;
      if (!config || address === undefined || !mayAsk(new URL(address))) return null;
      const hint = idToken === null ? {} : { id_token_hint: idToken };
      const parameters = { post_logout_redirect_uri: options.signedOutUri(), ...hint };
      return buildEndSessionUrl(config, parameters).href;
    },
  };
}
