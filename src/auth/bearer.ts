import { errors, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from 'jose';
import type { Clock } from '../lib/clock.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import {
  type Claimant,
  ClaimRefused,
  checkRegisteredClaims,
  type OidcRules,
  readClaimant,
  TOLERANCE,
} from './claims.ts';
import { SIGNING_ALGORITHMS } from './jwks.ts';
import { type ReadJws, readClaims, readJws, type Unreadable } from './jwt.ts';

/** OIDC bearer authentication of /privacy (contract section 6.1): a token is a caller, or it is refused. */

export interface BearerDeps {
  readonly rules: OidcRules;
  /**
   * The key of the identity provider that a header names. An unknown kid makes it look again at the provider, at most once
   * in a while; keys once learnt are served while the provider is away.
   * @throws {Unavailable} when no keys were ever learnt and the provider cannot be read now
   */
  readonly keys: JWTVerifyGetKey;
  readonly clock: Clock;
}

const BEARER = /^Bearer +(\S+)$/i;

const MISSING = 'Send one Authorization header: Bearer and a JWT from the identity provider.';
const NOT_SIGNED = 'The token is not signed with a key of the issuer.';
const UNREADABLE: Readonly<Record<Unreadable, string>> = {
  malformed: 'The token is not a JWT in compact serialization.',
  header: 'The header of the token has a member that gpd does not accept, or one of the wrong type.',
  algorithm: `The token must be signed with ${SIGNING_ALGORITHMS.join(' or ')}.`,
};

/** RFC 6750 section 3: without a credential no error code. */
export function unauthenticated(why: string | readonly string[], challenge = 'Bearer'): Refusal {
  return new Refusal('unauthenticated', {
    details: [why].flat(),
    headers: { 'www-authenticate': challenge },
  });
}

function badToken(why: string): Refusal {
  return unauthenticated(why, 'Bearer error="invalid_token"');
}

/** By jose, which judges the registered claims once more. Two keys of one kid are both tried. */
async function isSigned({ rules, keys, clock }: BearerDeps, token: string, { kid }: ReadJws) {
  const { issuer, audience } = rules;
  const algorithms = [...SIGNING_ALGORITHMS];
  const options: JWTVerifyOptions = {
    issuer,
    audience,
    algorithms,
    currentDate: new Date(clock()),
    clockTolerance: TOLERANCE,
  };
  const verifies = async (key: JWTVerifyGetKey): Promise<boolean> => {
    try {
      await jwtVerify(token, key, options);
      return true;
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      // OIDC Core section 10.1: with several keys a kid is a must.
      if (!(error instanceof errors.JWKSMultipleMatchingKeys) || kid === null) return false;
      for await (const one of error) if (await verifies(() => one)) return true;
      return false;
    }
  };
  return verifies(keys);
}

/**
 * What costs nothing is judged first: a stranger's token makes nobody look for keys.
 * @throws {Refusal} `unauthenticated`, with a sentence that says why and quotes nothing
 * @throws {Unavailable} when no keys are known and the identity provider cannot be read
 */
export async function verifyBearer(deps: BearerDeps, authorization: string | undefined): Promise<Claimant> {
  const token = BEARER.exec(authorization ?? '')?.[1];
  if (token === undefined) throw unauthenticated(MISSING);
  const jws = readJws(token);
  if (typeof jws === 'string') throw badToken(UNREADABLE[jws]);
  const claims = readClaims(jws.payload);
  if (!claims) throw badToken(UNREADABLE.malformed);
  try {
    checkRegisteredClaims(claims, deps.rules, deps.clock() / 1000);
    if (!(await isSigned(deps, token, jws))) throw badToken(NOT_SIGNED);
    return readClaimant(claims, deps.rules);
  } catch (error) {
    throw error instanceof ClaimRefused ? badToken(error.message) : error;
  }
}
