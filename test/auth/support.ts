import { Refusal, Unavailable } from '../../src/lib/errors.ts';
import type { Authenticate, OidcSettings } from '../../src/rights/oidc.ts';
import type { Idp } from '../support/oidc.ts';

export function oidcSettings(
  { issuer, audience }: Pick<Idp, 'issuer' | 'audience'>,
  more: Partial<OidcSettings> = {},
): OidcSettings {
  return {
    oidc_issuer: issuer,
    oidc_audience: audience,
    oidc_role_claim: 'gpd_role',
    oidc_tenant_claim: 'gpd_tenant',
    oidc_visitor_claim: 'gpd_visitor',
    oidc_principal_claim: 'sub',
    ...more,
  };
}

export interface Answer {
  readonly status: number;
  readonly code: string;
  readonly challenge: string;
  readonly details: readonly string[];
}

/** What a route would answer. Anything that is thrown and is neither of the two refusals would be a 500: it is thrown on. */
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

/** A clock that a test moves; it starts at the real time. */
export function movableClock(): { (): number; advance(ms: number): void } {
  let offset = 0;
  return Object.assign(() => Date.now() + offset, {
    advance(ms: number) {
      offset += ms;
    },
  });
}

/** The sentences by which a caller is told why. */
export const WHY = {
  missing: /^Send one Authorization header/,
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
