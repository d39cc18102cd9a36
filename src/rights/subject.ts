import type { Claimant } from '../auth/tokens.ts';
import { Refusal } from '../lib/errors.ts';

/**
 * The data that a subject may reach (contract 6.1). A visitorId reaches everything of its durable id; a link reaches only the
 * linked requests: clients assert signals and identical phones share a durable id, so that a link must not open another
 * person's trail.
 */
export interface Reach {
  readonly kid: string;
  /** Null: the token has no visitorId, or nothing is stored about it. */
  readonly durable: string | null;
  /** The visitorId in the token. */
  readonly visitorId: string | null;
  readonly linked: ReadonlySet<string>;
  /** Keyed reference of the principal. */
  readonly principal: string | null;
  readonly principalId: string | null;
}

/** @returns a reach of these requests and nothing else */
export const reachOfRequests = (kid: string, requests: Iterable<string>): Reach => ({
  kid,
  durable: null,
  visitorId: null,
  linked: new Set(requests),
  principal: null,
  principalId: null,
});

/** Reads that identify a subject. An unknown id gives null or an empty list, never an exception. */
export interface SubjectLookup {
  /** The durable id that a visitorId of the current or an earlier epoch belongs to. */
  durableOf(kid: string, visitorId: string): Promise<string | null>;
  linkedRequests(kid: string, principal: string): Promise<readonly string[]>;
  /** Null for a tenant that does not exist. */
  principalRef(kid: string, principalId: string): string | null;
}

/** @throws {Refusal} `subject-not-identified` when the token names no visitorId and its principal has no link */
export async function identifySubject(lookup: SubjectLookup, claimant: Claimant): Promise<Reach> {
  const { tenant: kid, visitor: visitorId, principal: principalId } = claimant;
  if (kid === null) throw new Refusal('subject-not-identified');
  const principal = principalId === null ? null : lookup.principalRef(kid, principalId);
  const linked = principal === null ? [] : await lookup.linkedRequests(kid, principal);
  if (visitorId === null && linked.length === 0) throw new Refusal('subject-not-identified');
  const durable = visitorId === null ? null : await lookup.durableOf(kid, visitorId);
  return { kid, durable, visitorId, linked: new Set(linked), principal, principalId };
}

export function reaches(
  reach: Reach,
  decision: { readonly requestId: string; readonly durable: string | null },
): boolean {
  const isOwnDevice = decision.durable !== null && decision.durable === reach.durable;
  return isOwnDevice || reach.linked.has(decision.requestId);
}
