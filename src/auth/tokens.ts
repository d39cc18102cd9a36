import { createPublicKey, type KeyObject } from 'node:crypto';
import { errors, type JWK, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from 'jose';
import { z } from 'zod';
import type { Clock } from '../lib/clock.ts';
import { decodeBase64Url } from '../lib/crypto.ts';
import { Refusal, tryOr, Unavailable } from '../lib/errors.ts';
import { JsonRefused, parseStrictJson } from '../lib/json.ts';
import { principalIdSchema } from '../schema/bundle.ts';
import type { Settings } from '../schema/settings.ts';

/**
 * Bearer tokens of an OIDC identity provider (contract section 6.1): parse the JWS strictly, check its
 * signature and registered claims, and read who the caller is. `rights/oidc-service.ts` calls verifyBearer
 * for /privacy; sign-in of staff and discovery use the other exports.
 */

export type Claims = Readonly<Record<string, unknown>>;

/** The parts of a compact JWS (RFC 7515) whose signature has not been checked yet. */
export interface UnverifiedJws {
  readonly kid: string | null;
  readonly payload: Buffer;
}

/** Characters. Longer tokens are refused unread; the headers of a request have at most 16 KB. */
export const MAX_TOKEN_LENGTH = 8192;

const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
const TYPES = new Set(['jwt', 'at+jwt']);
/**
 * These let the sender pick the key, require an extension,
 * or change how the payload is encoded (RFC 7515, RFC 7797).
 */
const FORBIDDEN_MEMBERS = ['jwk', 'jku', 'x5u', 'x5c', 'crit', 'b64', 'enc', 'zip'];

const headerSchema = z.looseObject({
  alg: z.string(),
  kid: z.string().max(1024).optional(),
  typ: z
    .string()
    .transform((typ) => typ.toLowerCase().replace(/^application\//, ''))
    .refine((typ) => TYPES.has(typ))
    .optional(),
});

/** @returns null unless the bytes are one JSON object without duplicate keys */
export function readClaims(bytes: Buffer): Claims | null {
  try {
    const value = parseStrictJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Claims) : null;
  } catch (error) {
    if (error instanceof JsonRefused || error instanceof TypeError) return null;
    throw error;
  }
}

export type JwsFault = 'malformed' | 'header' | 'algorithm';

/**
 * Accepts exactly three canonical base64url parts (RFC 7515 section 2: no padding, no white space,
 * no unused bits) and a header without members that would change how the other parts are read.
 */
export function readJws(token: string): UnverifiedJws | JwsFault {
  if (token.length > MAX_TOKEN_LENGTH || !COMPACT.test(token)) return 'malformed';
  const [headerBytes, payload, signature] = token.split('.').map((part) => decodeBase64Url(part));
  const header = headerBytes ? readClaims(headerBytes) : null;
  if (!header || !payload || !signature) return 'malformed';
  const parsed = headerSchema.safeParse(header);
  if (!parsed.success || FORBIDDEN_MEMBERS.some((name) => Object.hasOwn(header, name))) return 'header';
  const { alg, kid = null } = parsed.data;
  return (SIGNING_ALGORITHMS as readonly string[]).includes(alg) ? { kid, payload } : 'algorithm';
}

/**
 * `alg` of a token. ES256 needs a P-256 key, RS256 an RSA key of at least 2048 bits (RFC 7518 section 3.1).
 */
export const SIGNING_ALGORITHMS = ['ES256', 'RS256'] as const;
const MAX_KEYS = 100;
const MIN_RSA_BITS = 2048;
/** A larger modulus would let any stranger's token cost much CPU time. */
const MAX_RSA_BITS = 8192;

const base64url = z.string().regex(/^[A-Za-z0-9_-]+$/);
const commonMembers = {
  kid: z.string().optional(),
  use: z.literal('sig').optional(),
  key_ops: z
    .array(z.string())
    .refine((operations) => operations.includes('verify'))
    .optional(),
  // Anybody can sign with a private key that was published.
  d: z.undefined().optional(),
};
const jwkSchema = z.discriminatedUnion('kty', [
  z.object({
    ...commonMembers,
    kty: z.literal('EC'),
    crv: z.literal('P-256'),
    alg: z.literal('ES256').optional(),
    x: base64url,
    y: base64url,
  }),
  z.object({
    ...commonMembers,
    kty: z.literal('RSA'),
    alg: z.literal('RS256').optional(),
    n: base64url,
    e: base64url,
  }),
]);
const jwksSchema = z.object({ keys: z.array(z.unknown()).max(MAX_KEYS) });

type Jwk = z.output<typeof jwkSchema>;

/** RFC 8017 section 3.1: an exponent of 1 would let anyone sign. */
function isSoundRsa(key: KeyObject): boolean {
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
  const hasAllowedSize = modulusLength >= MIN_RSA_BITS && modulusLength <= MAX_RSA_BITS;
  return hasAllowedSize && publicExponent >= 3n && publicExponent % 2n === 1n;
}

/**
 * Sets `alg`, so that jose, which picks a key by `kid` and `alg`, never uses it with another algorithm.
 * @returns null for an invalid or unsafe key
 */
function importPublicKey(jwk: Jwk): JWK | null {
  const { kty, kid } = jwk;
  const key = kty === 'EC' ? { kty, crv: jwk.crv, x: jwk.x, y: jwk.y } : { kty, n: jwk.n, e: jwk.e };
  const imported = tryOr(() => createPublicKey({ key, format: 'jwk' }), null);
  if (!imported || (kty === 'RSA' && !isSoundRsa(imported))) return null;
  return { ...key, alg: kty === 'EC' ? 'ES256' : 'RS256', ...(kid === undefined ? {} : { kid }) };
}

/** @returns the usable keys of a JWKS; null if it is no JWKS or has too many keys */
export function readSigningKeys(document: unknown): readonly JWK[] | null {
  const parsed = jwksSchema.safeParse(document);
  if (!parsed.success) return null;
  return parsed.data.keys.flatMap((candidate) => {
    const jwk = jwkSchema.safeParse(candidate);
    return (jwk.success ? importPublicKey(jwk.data) : null) ?? [];
  });
}

export const ROLES = ['subject', 'reviewer', 'dpo'] as const;
export type Role = (typeof ROLES)[number];

/** The caller, as a verified token describes them (contract section 6.1). */
export interface Claimant {
  readonly issuer: string;
  readonly sub: string;
  readonly roles: ReadonlySet<Role>;
  /** The tenant's kid. Null: each route that needs a tenant refuses. */
  readonly tenant: string | null;
  /** A visitorId that the identity provider vouches for. */
  readonly visitor: string | null;
  /** The principalId of the consent API. */
  readonly principal: string | null;
}

/** The settings are names of claims, or JSON pointers to them (RFC 6901) when they begin with a slash. */
export interface OidcRules extends Pick<Settings, Extract<keyof Settings, `oidc_${string}_claim`>> {
  readonly issuer: string;
  readonly audience: string;
}

export class ClaimRefused extends Error {}

/** Seconds by which two clocks may differ. */
const CLOCK_TOLERANCE_SECONDS = 30;

const numericDate = z.number().min(0);
const startTimes = { nbf: numericDate.optional(), iat: numericDate.optional() };
const startTimesSchema = z.looseObject(startTimes);
/** RFC 7519 section 2: in seconds. Milliseconds would make a token that never expires. */
const MAX_EXPIRY = 1e11;
const registeredSchema = z.looseObject({
  iss: z.string(),
  aud: z.union([z.string(), z.array(z.string())]),
  exp: numericDate.max(MAX_EXPIRY),
  ...startTimes,
});

/** False before `nbf` or `iat`, and when one of them is not a number (RFC 7519 section 4.1). */
export function hasBegun(claims: Claims, nowSeconds: number): boolean {
  const parsed = startTimesSchema.safeParse(claims);
  if (!parsed.success) return false;
  const { nbf = 0, iat = 0 } = parsed.data;
  return Math.max(nbf, iat) <= nowSeconds + CLOCK_TOLERANCE_SECONDS;
}

const INVALID_REGISTERED_CLAIMS =
  'The token needs iss, aud and exp as RFC 7519 defines them, and nbf and iat as numbers.';

/** @throws {ClaimRefused} with a sentence for the caller that quotes nothing of the token */
function checkRegisteredClaims(claims: Claims, rules: OidcRules, nowSeconds: number): void {
  const parsed = registeredSchema.safeParse(claims);
  if (!parsed.success) throw new ClaimRefused(INVALID_REGISTERED_CLAIMS);
  const { iss, aud, exp } = parsed.data;
  if (iss !== rules.issuer) throw new ClaimRefused('The token is from another issuer.');
  if (![aud].flat().includes(rules.audience)) throw new ClaimRefused('The token is for another audience.');
  if (exp <= nowSeconds - CLOCK_TOLERANCE_SECONDS) throw new ClaimRefused('The token has expired.');
  if (!hasBegun(claims, nowSeconds)) throw new ClaimRefused('The token is not valid yet.');
  // RFC 7800: only someone who proves possession of that key
  // may use the token, and gpd does not read such proofs.
  if (Object.hasOwn(claims, 'cnf'))
    throw new ClaimRefused('The token is bound to a key; send one that is not.');
}

function readMember(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

/** Names with dots or slashes are common, so only a leading slash makes `name` a JSON pointer (RFC 6901). */
function findClaim(claims: Claims, name: string): unknown {
  if (!name.startsWith('/')) return readMember(claims, name);
  const path = name.slice(1).split('/');
  return path.reduce<unknown>(
    (value, part) => readMember(value, part.replaceAll('~1', '/').replaceAll('~0', '~')),
    claims,
  );
}

/** Accepts only texts that are valid principal ids, because a database or a log could choke on others. */
const readText = (value: unknown): string | null => principalIdSchema.safeParse(value).data ?? null;

/**
 * Absent, null and empty: the token names none, and a route that needs it refuses the caller. Another value
 * that is no text is refused as well, and not ignored.
 */
function optionalText(claims: Claims, name: string): string | null {
  const value = findClaim(claims, name) ?? '';
  if (value === '') return null;
  const text = readText(value);
  if (text === null) throw new ClaimRefused(`The claim ${name} must be a string.`);
  return text;
}

/** Ignores roles that gpd does not know: they are for other services. */
function readRoles(claims: Claims, name: string): ReadonlySet<Role> {
  const claimed = [findClaim(claims, name)].flat();
  const roles = new Set(ROLES.filter((role) => claimed.includes(role)));
  if (roles.size === 0)
    throw new ClaimRefused(`The claim ${name} names none of the roles ${ROLES.join(', ')}.`);
  return roles;
}

/** @throws {ClaimRefused} with a sentence for the caller that quotes nothing of the token */
export function readClaimant(claims: Claims, rules: OidcRules): Claimant {
  const { sub } = claims;
  // OIDC compares `sub` byte for byte, so it is not normalised.
  if (typeof sub !== 'string' || readText(sub) === null)
    throw new ClaimRefused('The claim sub must be a string that is not empty.');
  return {
    issuer: rules.issuer,
    sub,
    roles: readRoles(claims, rules.oidc_role_claim),
    tenant: optionalText(claims, rules.oidc_tenant_claim),
    visitor: optionalText(claims, rules.oidc_visitor_claim),
    principal: optionalText(claims, rules.oidc_principal_claim),
  };
}

interface BearerDeps {
  readonly rules: OidcRules;
  /**
   * Finds the key that a header names. An unknown kid makes it fetch the provider's keys again,
   * with a limit on how often; keys already fetched are used while the provider is unreachable.
   * @throws {Unavailable} when no keys were ever fetched and the provider is unreachable
   */
  readonly keys: JWTVerifyGetKey;
  readonly clock: Clock;
}

const BEARER = /^Bearer +(\S+)$/i;

const MISSING = 'Send one Authorization header: Bearer and a JWT from the identity provider.';
const NOT_SIGNED = 'The token is not signed with a key of the issuer.';
const UNREADABLE: Readonly<Record<JwsFault, string>> = {
  malformed: 'The token is not a JWT in compact serialization.',
  header: 'The header of the token has a member that gpd does not accept, or one of the wrong type.',
  algorithm: `The token must be signed with ${SIGNING_ALGORITHMS.join(' or ')}.`,
};

/** RFC 6750 section 3: the challenge has no error code when the request has no credential. */
export function unauthenticated(reasons: string | readonly string[], challenge = 'Bearer'): Refusal {
  return new Refusal('unauthenticated', {
    details: [reasons].flat(),
    headers: { 'www-authenticate': challenge },
  });
}

function invalidToken(reason: string): Refusal {
  return unauthenticated(reason, 'Bearer error="invalid_token"');
}

/** jose checks the registered claims a second time. If two keys have the same kid, both are tried. */
async function isSigned({ rules, keys, clock }: BearerDeps, token: string, { kid }: UnverifiedJws) {
  const { issuer, audience } = rules;
  const algorithms = [...SIGNING_ALGORITHMS];
  const options: JWTVerifyOptions = {
    issuer,
    audience,
    algorithms,
    currentDate: new Date(clock()),
    clockTolerance: CLOCK_TOLERANCE_SECONDS,
  };
  const verifiesWith = async (key: JWTVerifyGetKey): Promise<boolean> => {
    try {
      await jwtVerify(token, key, options);
      return true;
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      // OIDC Core section 10.1: if there are several keys, a token must name its kid.
      if (!(error instanceof errors.JWKSMultipleMatchingKeys) || kid === null) return false;
      for await (const candidate of error) if (await verifiesWith(() => candidate)) return true;
      return false;
    }
  };
  return verifiesWith(keys);
}

/**
 * Does the cheap checks first, so that a stranger's token never makes gpd fetch keys.
 * @throws {Refusal} `unauthenticated`, with a sentence that says why and quotes nothing
 * @throws {Unavailable} when no keys are known and the identity provider cannot be read
 */
export async function verifyBearer(deps: BearerDeps, authorization: string | undefined): Promise<Claimant> {
  const token = BEARER.exec(authorization ?? '')?.[1];
  if (token === undefined) throw unauthenticated(MISSING);
  const jws = readJws(token);
  if (typeof jws === 'string') throw invalidToken(UNREADABLE[jws]);
  const claims = readClaims(jws.payload);
  if (!claims) throw invalidToken(UNREADABLE.malformed);
  try {
    checkRegisteredClaims(claims, deps.rules, deps.clock() / 1000);
    if (!(await isSigned(deps, token, jws))) throw invalidToken(NOT_SIGNED);
    return readClaimant(claims, deps.rules);
  } catch (error) {
    throw error instanceof ClaimRefused ? invalidToken(error.message) : error;
  }
}
