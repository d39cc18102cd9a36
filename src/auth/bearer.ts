import { compactVerify } from 'jose';
import type { Clock } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { type Caller, ClaimRefused, checkRegisteredClaims, type OidcRules, readCaller } from './claims.ts';
import { SIGNING_ALGORITHMS, type SigningKey } from './jwks.ts';
import { readToken, type Unreadable } from './jwt.ts';
import type { IssuerKeys } from './ports.ts';

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

async function isSignedBy(token: string, { alg, key }: SigningKey): Promise<boolean> {
  try {
    await compactVerify(token, key, { algorithms: [alg] });
    return true;
  } catch {
    return false;
  }
}

async function isSigned(token: string, candidates: readonly SigningKey[]): Promise<boolean> {
  for (const candidate of candidates) if (await isSignedBy(token, candidate)) return true;
  return false;
}

/**
 * What costs nothing is judged first: a stranger's token makes nobody look for keys.
 * @throws {Refusal} `unauthenticated`, with a sentence that says why and quotes nothing
 * @throws {Unavailable} when no keys are known and the identity provider cannot be read
 */
export async function verifyBearer(deps: BearerDeps, authorization: string | undefined): Promise<Caller> {
  const token = BEARER.exec(authorization ?? '')?.[1];
  if (token === undefined) throw unauthenticated(MISSING);
  const read = readToken(token);
  if (typeof read === 'string') throw badToken(UNREADABLE[read]);
  try {
    checkRegisteredClaims(read.claims, deps.rules, deps.clock() / 1000);
    const candidates = await deps.keys.candidates(read.alg, read.kid);
    if (!(await isSigned(token, candidates))) throw badToken(NOT_SIGNED);
    return readCaller(read.claims, deps.rules);
  } catch (error) {
    throw error instanceof ClaimRefused ? badToken(error.message) : error;
  }
}
