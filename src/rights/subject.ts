import type { Claimant } from '../auth/tokens.ts';
import { Refusal } from '../lib/errors.ts';

/**
 * What a subject may reach (contract 6.1). A visitorId reaches everything of its durable id; a link reaches only the
 * linked requests: signals are asserted by clients and identical phones share a durable id, so that a link must not
 * open another person's trail.
 */
export interface Reach {
  readonly kid: string;
  /** Null: no visitorId, or one that nothing is held about. */
  readonly durable: string | null;
  /** The visitorId as the token says it. */
  readonly visitorId: string | null;
  readonly linked: ReadonlySet<string>;
  /** Keyed reference of the principal. */
  readonly principal: string | null;
  readonly principalId: string | null;
}

/** Of these requests, and nothing else. */
export const requestsAlone = (kid: string, requests: Iterable<string>): Reach => ({
  kid,
  durable: null,
  visitorId: null,
  linked: new Set(requests),
  principal: null,
  principalId: null,
});

/** Reads of one moment; an unknown id is null or an empty list, never an exception. */
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

/** Is this decision within reach? */
export function reaches(
  reach: Reach,
  decision: { readonly requestId: string; readonly durable: string | null },
): boolean {
  const own = decision.durable !== null && decision.durable === reach.durable;
  return own || reach.linked.has(decision.requestId);
}
