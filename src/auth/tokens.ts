import { createPublicKey, type KeyObject } from 'node:crypto';
import { errors, type JWK, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from 'jose';
import { z } from 'zod';
import type { Clock } from '../lib/clock.ts';
import { decodeBase64Url } from '../lib/crypto.ts';
import { Refusal, tryOr, Unavailable } from '../lib/errors.ts';
import { JsonRefused, parseStrictJson } from '../lib/json.ts';
import { principalIdSchema } from '../schema/bundle.ts';
import type { Settings } from '../schema/settings.ts';

/** A compact JWS (RFC 7515) read as strictly as anything can write it. Nothing of it is believed yet. */

export type Claims = Readonly<Record<string, unknown>>;

export interface ReadJws {
  readonly kid: string | null;
  readonly payload: Buffer;
}

/** A token that is larger is no token of ours; a request's headers have at most 16 KB. */
export const MAX_TOKEN_LENGTH = 8192;

const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
const TYPES = new Set(['jwt', 'at+jwt']);
/** Keys or addresses of keys that the sender picks, extensions that have to be understood, a payload that is not encoded. */
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

/** One JSON object without double keys, or null. */
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

export type Unreadable = 'malformed' | 'header' | 'algorithm';

/**
 * Exactly three canonical base64url parts (RFC 7515 section 2: no padding, no white space; no bits left over) and a header
 * with nothing in it that would change how the rest is read.
 */
export function readJws(token: string): ReadJws | Unreadable {
  if (token.length > MAX_TOKEN_LENGTH || !COMPACT.test(token)) return 'malformed';
  const [head, payload, signature] = token.split('.').map((part) => decodeBase64Url(part));
  const header = head ? readClaims(head) : null;
  if (!header || !payload || !signature) return 'malformed';
  const known = headerSchema.safeParse(header);
  if (!known.success || FORBIDDEN_MEMBERS.some((name) => Object.hasOwn(header, name))) return 'header';
  const { alg, kid = null } = known.data;
  return (SIGNING_ALGORITHMS as readonly string[]).includes(alg) ? { kid, payload } : 'algorithm';
}

/** The signing keys in an identity provider's JWKS (RFC 7517) that this server takes: P-256 and RSA from 2048 bits. */

export const SIGNING_ALGORITHMS = ['ES256', 'RS256'] as const;
const MAX_KEYS = 100;
const MIN_RSA_BITS = 2048;
/** A larger modulus makes each verification a burden that a stranger can order. */
const MAX_RSA_BITS = 8192;

const base64url = z.string().regex(/^[A-Za-z0-9_-]+$/);
const common = {
  kid: z.string().optional(),
  use: z.literal('sig').optional(),
  key_ops: z
    .array(z.string())
    .refine((operations) => operations.includes('verify'))
    .optional(),
  // A private key that was published is anybody's.
  d: z.undefined().optional(),
};
const jwkSchema = z.discriminatedUnion('kty', [
  z.object({
    ...common,
    kty: z.literal('EC'),
    crv: z.literal('P-256'),
    alg: z.literal('ES256').optional(),
    x: base64url,
    y: base64url,
  }),
  z.object({
    ...common,
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
  const sized = modulusLength >= MIN_RSA_BITS && modulusLength <= MAX_RSA_BITS;
  return sized && publicExponent >= 3n && publicExponent % 2n === 1n;
}

/** What jose imports and picks by `kid` and `alg`: a key never serves another algorithm. Null: nobody may sign by it. */
function publicKey(jwk: Jwk): JWK | null {
  const { kty, kid } = jwk;
  const key = kty === 'EC' ? { kty, crv: jwk.crv, x: jwk.x, y: jwk.y } : { kty, n: jwk.n, e: jwk.e };
  const imported = tryOr(() => createPublicKey({ key, format: 'jwk' }), null);
  if (!imported || (kty === 'RSA' && !isSoundRsa(imported))) return null;
  return { ...key, alg: kty === 'EC' ? 'ES256' : 'RS256', ...(kid === undefined ? {} : { kid }) };
}

/** The keys that can be used; others are passed over. Null: not a JWKS, or too many keys. */
export function readSigningKeys(document: unknown): readonly JWK[] | null {
  const parsed = jwksSchema.safeParse(document);
  if (!parsed.success) return null;
  return parsed.data.keys.flatMap((candidate) => {
    const jwk = jwkSchema.safeParse(candidate);
    return (jwk.success ? publicKey(jwk.data) : null) ?? [];
  });
}

/** What a token says, judged (RFC 7519 section 4.1, RFC 9068 section 4). */

export const ROLES = ['subject', 'reviewer', 'dpo'] as const;
export type Role = (typeof ROLES)[number];

/** Who asks, as a verified token says it (contract 6.1). */
export interface Claimant {
  readonly issuer: string;
  readonly sub: string;
  readonly roles: ReadonlySet<Role>;
  /** The kid of the tenant that the caller is bound to. */
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
const TOLERANCE = 30;

const numericDate = z.number().min(0);
const begins = { nbf: numericDate.optional(), iat: numericDate.optional() };
const beginsSchema = z.looseObject(begins);
/** RFC 7519 section 2: in seconds. Milliseconds would make a token that never expires. */
const LATEST_EXPIRY = 1e11;
const registeredSchema = z.looseObject({
  iss: z.string(),
  aud: z.union([z.string(), z.array(z.string())]),
  exp: numericDate.max(LATEST_EXPIRY),
  ...begins,
});

/** Whether a token was issued, and is valid, by now; false where it says so in no number. */
export function hasBegun(claims: Claims, nowSeconds: number): boolean {
  const parsed = beginsSchema.safeParse(claims);
  if (!parsed.success) return false;
  const { nbf = 0, iat = 0 } = parsed.data;
  return Math.max(nbf, iat) <= nowSeconds + TOLERANCE;
}

const MISSHAPEN = 'The token needs iss, aud and exp as RFC 7519 defines them, and nbf and iat as numbers.';

/** @throws {ClaimRefused} with a sentence for the caller that quotes nothing of the token */
function checkRegisteredClaims(claims: Claims, rules: OidcRules, nowSeconds: number): void {
  const parsed = registeredSchema.safeParse(claims);
  if (!parsed.success) throw new ClaimRefused(MISSHAPEN);
  const { iss, aud, exp } = parsed.data;
  if (iss !== rules.issuer) throw new ClaimRefused('The token is from another issuer.');
  if (![aud].flat().includes(rules.audience)) throw new ClaimRefused('The token is for another audience.');
  if (exp <= nowSeconds - TOLERANCE) throw new ClaimRefused('The token has expired.');
  if (!hasBegun(claims, nowSeconds)) throw new ClaimRefused('The token is not valid yet.');
  // RFC 7800: it may be used only by who proves a key, and that proof is not read here.
  if (Object.hasOwn(claims, 'cnf'))
    throw new ClaimRefused('The token is bound to a key; send one that is not.');
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

/** A claim by its name, as it is (names with dots and slashes are usual), or by a JSON pointer. */
function findClaim(claims: Claims, name: string): unknown {
  if (!name.startsWith('/')) return member(claims, name);
  const path = name.slice(1).split('/');
  return path.reduce<unknown>(
    (value, part) => member(value, part.replaceAll('~1', '/').replaceAll('~0', '~')),
    claims,
  );
}

/** As a principalId: what a database or a log could stumble over never gets there. Null for anything invalid. */
const readText = (value: unknown): string | null => principalIdSchema.safeParse(value).data ?? null;

/** Absent, null and empty name nothing; anything else that is not a text is refused: a restriction is never dropped. */
function optionalText(claims: Claims, name: string): string | null {
  const value = findClaim(claims, name) ?? '';
  if (value === '') return null;
  const text = readText(value);
  if (text === null) throw new ClaimRefused(`The claim ${name} must be a string.`);
  return text;
}

/** Known roles only; others are for other services. */
function readRoles(claims: Claims, name: string): ReadonlySet<Role> {
  const named = [findClaim(claims, name)].flat();
  const roles = new Set(ROLES.filter((role) => named.includes(role)));
  if (roles.size === 0)
    throw new ClaimRefused(`The claim ${name} names none of the roles ${ROLES.join(', ')}.`);
  return roles;
}

/** @throws {ClaimRefused} with a sentence for the caller that quotes nothing of the token */
export function readClaimant(claims: Claims, rules: OidcRules): Claimant {
  const { sub } = claims;
  // As the provider spells it: OIDC compares it byte for byte.
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
