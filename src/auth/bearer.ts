import type { Clock } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { type Caller, ClaimRefused, checkRegisteredClaims, type OidcRules, readCaller } from './claims.ts';
import { SIGNING_ALGORITHMS } from './jwks.ts';
import { readClaims, readJws, type Unreadable } from './jwt.ts';
import type { IssuerKeys } from './ports.ts';
import { isSigned } from './signature.ts';

/** OIDC bearer authentication of /privacy (contract section 6.1): a token is a caller, or it is refused. */

export interface BearerDeps {
  readonly rules: OidcRules;
  readonly keys: IssuerKeys;
  readonly clock: Clock;
}

const BEARER = /^Bearer +(\S+)$/i;

const MISSING = 'Send one Authorization header: Bearer and a JWT of the identity provider.';
const NOT_SIGNED = 'The token is not signed by a key of the issuer.';
const UNREADABLE: Readonly<Record<Unreadable, string>> = {
  malformed: 'The token is not a JWT in compact serialization.',
  header: 'The header of the token has a member that is not taken here, or one of the wrong type.',
  algorithm: `The token has to be signed by ${SIGNING_ALGORITHMS.join(' or ')}.`,
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

/**
 * What costs nothing is judged first: a stranger's token makes nobody look for keys.
 * @throws {Refusal} `unauthenticated`, with a sentence that says why and quotes nothing
 * @throws {Unavailable} when no keys are known and the identity provider cannot be read
 */
export async function verifyBearer(deps: BearerDeps, authorization: string | undefined): Promise<Caller> {
  const token = BEARER.exec(authorization ?? '')?.[1];
  if (token === undefined) throw unauthenticated(MISSING);
  const jws = readJws(token);
  if (typeof jws === 'string') throw badToken(UNREADABLE[jws]);
  const claims = readClaims(jws.payload);
  if (!claims) throw badToken(UNREADABLE.malformed);
  try {
    checkRegisteredClaims(claims, deps.rules, deps.clock() / 1000);
    const candidates = await deps.keys.candidates(jws.alg, jws.kid);
    if (!(await isSigned(token, candidates))) throw badToken(NOT_SIGNED);
    return readCaller(claims, deps.rules);
  } catch (error) {
    throw error instanceof ClaimRefused ? badToken(error.message) : error;
  }
}
