import type { Actor } from '../lib/act.ts';
import { hmacSha256 } from '../lib/hash.ts';

/** What a record may point at without naming it. */
export type RefKind = 'actor' | 'contest' | 'durable' | 'principal' | 'request';

/**
 * Keyed reference: stable within a tenant, meaningless without its key. Receipts, the audit log and the tombstones of
 * erasures hold these and no id, so that they may outlive what they describe.
 */
export function rightsRef(rightsKey: Uint8Array, kind: RefKind, id: string): string {
  return hmacSha256(rightsKey, `${kind}|${id}`).toString('base64url');
}

/** A staff member or a subject, by the issuer's name for them (OIDC core 1.0 section 5.7: `iss` and `sub` together). */
export function actorRef(rightsKey: Uint8Array, issuer: string, sub: string): string {
  return rightsRef(rightsKey, 'actor', JSON.stringify([issuer, sub]));
}

/** A non-reversible handle that a person can compare with another visit's, in groups of four. */
export function displayHandle(rightsKey: Uint8Array, durable: string): string {
  const hex = hmacSha256(rightsKey, `handle|${durable}`).toString('hex').slice(0, 12);
  return hex.replace(/(.{4})(?=.)/g, '$1-');
}

/** Where an operator's name comes from: the account at the command line, or the API key. */
export type OperatorSource = 'gpd cli' | 'gpd api key';

export function operatorActor(rightsKey: Uint8Array, source: OperatorSource, name: string): Actor {
  return { role: 'operator', ref: actorRef(rightsKey, source, name) };
}
