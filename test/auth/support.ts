import { Refusal, Unavailable } from '../../src/lib/errors.ts';
import type { Authenticate, OidcSettings } from '../../src/rights/oidc-service.ts';
import type { Idp } from '../support/oidc.ts';

export function oidcSettings(
  { issuer, audience }: Pick<Idp, 'issuer' | 'audience'>,
  changes: Partial<OidcSettings> = {},
): OidcSettings {
  return {
    oidc_issuer: issuer,
    oidc_audience: audience,
    oidc_role_claim: 'gpd_role',
    oidc_tenant_claim: 'gpd_tenant',
    oidc_visitor_claim: 'gpd_visitor',
    oidc_principal_claim: 'sub',
    ...changes,
  };
}

export interface Answer {
  readonly status: number;
  readonly code: string;
  readonly challenge: string;
  readonly details: readonly string[];
}

/** Turns a refusal into the answer of a route. Any other error would be a 500, so it is thrown again. */
export async function answerTo(authenticate: Authenticate, authorization?: string): Promise<Answer> {
  try {
    await authenticate(authorization);
    return { status: 200, code: 'ok', challenge: '', details: [] };
  } catch (error) {
    if (error instanceof Unavailable) return { status: 503, code: 'unavailable', challenge: '', details: [] };
    if (!(error instanceof Refusal)) throw error;
    const { status, code, headers, details = [] } = error;
    return { status, code, challenge: headers['www-authenticate'] ?? '', details };
  }
}

/** Creates a clock that starts at the real time and that a test can advance. */
export function movableClock(): { (): number; advance(ms: number): void } {
  let offset = 0;
  return Object.assign(() => Date.now() + offset, {
    advance(ms: number) {
      offset += ms;
    },
  });
}

/** The sentences that tell a caller why a token was refused. */
export const REASONS = {
  malformed: /compact serialization/,
  header: /^The header of the token/,
  algorithm: /signed with ES256 or RS256/,
  signature: /not signed with a key of the issuer/,
  misshapen: /RFC 7519/,
  issuer: /another issuer/,
  audience: /another audience/,
  expired: /has expired/,
  early: /not valid yet/,
  bound: /bound to a key/,
  sub: /^The claim sub must be/,
  roles: /names none of the roles/,
} as const;
