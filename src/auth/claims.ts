import { z } from 'zod';
import { principalIdSchema } from '../schema/bundle.ts';
import type { Settings } from '../schema/settings.ts';
import type { Claims } from './jwt.ts';

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
export const TOLERANCE = 30;

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
export function checkRegisteredClaims(claims: Claims, rules: OidcRules, nowSeconds: number): void {
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
