import type { Claimant } from '../auth/tokens.ts';
import { unauthenticated, verifyBearer } from '../auth/tokens.ts';
import { createIssuerKeys } from '../egress/issuer-keys.ts';
import { fetchSigningKeys } from '../egress/oidc-discovery.ts';
import type { Clock } from '../lib/clock.ts';
import { environmentName, type Settings } from '../schema/settings.ts';

/**
 * Authenticates a caller of /privacy by the Authorization header.
 * @throws {Refusal} 401, {Unavailable} 503
 */
export type Authenticate = (authorization: string | undefined) => Promise<Claimant>;

export type OidcSettings = Pick<Settings, Extract<keyof Settings, `oidc_${string}`>>;

/**
 * @returns texts such as `GPD_OIDC_ISSUER to the issuer of the tokens`, one for each required setting that is
 * missing
 */
export function missingOidc(config: OidcSettings): readonly string[] {
  const needed = ['oidc_issuer', 'oidc_audience'] as const;
  const meanings = { oidc_issuer: 'the issuer of the tokens', oidc_audience: 'the audience that they name' };
  return needed
    .filter((name) => config[name] === null)
    .map((name) => `${environmentName(name)} to ${meanings[name]}`);
}

/** @returns one sentence per setting that is missing, which the caller gets */
export const missingOidcSettings = (config: OidcSettings): readonly string[] =>
  missingOidc(config).map((setting) => `No identity provider is configured: set ${setting}.`);

/** Denies every call until it is configured. It contacts the identity provider with the first token. */
export function createAuthenticator(
  config: OidcSettings,
  clock: Clock,
  onFault: (error: unknown) => void,
  monotonic?: () => number,
): Authenticate {
  const { oidc_issuer: issuer, oidc_audience: audience } = config;
  if (issuer === null || audience === null) {
    const missing = missingOidcSettings(config);
    return () => Promise.reject(unauthenticated(missing));
  }
  const rules = { ...config, issuer, audience };
  const keys = createIssuerKeys({ monotonic, fetchKeys: () => fetchSigningKeys(issuer), onFault });
  return (authorization) => verifyBearer({ rules, keys, clock }, authorization);
}
