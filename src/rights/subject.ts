import type { Installation } from '../tenants/directory.ts';
import type { ContestTexts } from './contests/contest.ts';

/** The parts that all acts about a person work with. */
export interface RightsParts extends Pick<Installation, 'database' | 'clock' | 'random' | 'tenantOf'> {
  /** Reads and writes the texts of contests. */
  readonly contestTexts: ContestTexts;
}

/**
 * The data that a subject may reach (contract 6.1). A visitorId reaches everything of its durable id; a link
 * reaches only the linked requests: clients assert signals and identical phones share a durable id, so that a
 * link must not open another person's trail.
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

export function reaches(
  reach: Reach,
  decision: { readonly requestId: string; readonly durable: string | null },
): boolean {
  const isOwnDevice = decision.durable !== null && decision.durable === reach.durable;
  return isOwnDevice || reach.linked.has(decision.requestId);
}
