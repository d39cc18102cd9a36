import { SECOND } from '../lib/clock.ts';
import type { Given, REASONS } from '../schema/consent.ts';
import { isOutdated, strictestGpc } from '../tenants/purposes.ts';
import type { StateRow } from '../tenants/state-mac.ts';
import type { ConsentRules } from '../tenants/tenant.ts';

/** Decides from one keyed read whether a processing is allowed; no hashing, no write (contract section 7). */

export type Reason = (typeof REASONS)[number];

/** Place in the tenant's log where a decision can be looked up. */
export interface ProofRef {
  readonly seq: number;
  /** Lower-case hex of SHA-256(0x00 ‖ entry). */
  readonly hash: string;
}

/** The last choice of a principal about one purpose. */
export type ConsentEvent = StateRow;

/** Giver of a grant, by the class of the verdict whose bundle claimed it. */
export const GIVEN_BY = {
  human: 'person',
  declared_agent: 'agent',
  undeclared_automation: 'automation',
} as const satisfies Record<string, Given>;

/** True if no indication of the person's wishes is known (GDPR article 4(11)). */
export const isDoubted = ({ given }: Pick<ConsentEvent, 'given'>): boolean =>
  given === 'agent' || given === 'automation';

/** The state of a principal for one purpose. */
export interface PrincipalState {
  /** True if the person was erased and has granted nothing since. */
  readonly erased: boolean;
  /**
   * True if a Global Privacy Control signal opts the principal out of this purpose, as far as its policy
   * honours the signal.
   */
  readonly gpc: boolean;
  /** A principal that was joined with this one had refused, and its record was erased since. */
  readonly withheld: boolean;
  readonly event: ConsentEvent | null;
  /** The head of the log, for decisions that no entry of the principal proves. */
  readonly head: ProofRef;
}

/** The newer of two choices; of two in the same second the refusal (contract-2 section 20). */
export function newerEvent(one: ConsentEvent, other: ConsentEvent): ConsentEvent {
  const seconds = [one, other].map(({ at }) => Math.floor(at / SECOND)) as [number, number];
  if (seconds[0] !== seconds[1]) return seconds[0] > seconds[1] ? one : other;
  const [oneGrants, otherGrants] = [one.choice === 'granted', other.choice === 'granted'];
  if (oneGrants !== otherGrants) return oneGrants ? other : one;
  return one.seq > other.seq ? one : other;
}

/**
 * The state of principals that are one person, in any order: the newest choice counts, and a signal or an
 * erased refusal of any denies.
 */
export function joinStates(first: PrincipalState, ...rest: readonly PrincipalState[]): PrincipalState {
  if (rest.length === 0) return first;
  const states = [first, ...rest];
  const events = states.flatMap(({ event }) => event ?? []);
  const event = events.length === 0 ? null : events.reduce(newerEvent);
  return {
    // The yes of one is newer than the erasure of another, or it was not touched by it.
    erased: states.some(({ erased }) => erased) && event?.choice !== 'granted',
    gpc: states.some(({ gpc }) => gpc),
    withheld: states.some(({ withheld }) => withheld),
    event,
    head: first.head,
  };
}

export type ConsentDecision = Readonly<ReturnType<typeof decideConsent>>;

function reasonOf(purpose: string, state: PrincipalState, rules: ConsentRules, now: number): Reason {
  const terms = rules.termsOf(purpose);
  const { event } = state;
  if (!terms) return 'unknown-purpose';
  if (state.erased) return 'erased';
  const gpcPolicy = event ? strictestGpc(terms, event.definition) : terms.gpc;
  // Only the policy `ask` lets a yes overrule the signal; later choices are judged below.
  const overruled = gpcPolicy === 'ignore' || (gpcPolicy === 'ask' && event?.overGpc === true);
  if (state.gpc && !overruled) return 'gpc-opt-out';
  if (state.withheld) return 'withdrawn';
  // A browser's signal is not the person's choice: without the signal the person is asked.
  if (!event || event.choice === 'gpc-opt-out') return 'never-asked';
  if (event.choice !== 'granted') return event.choice;
  if (event.expiresAt !== null && event.expiresAt <= now) return 'expired';
  if (rules.deniesDoubted && isDoubted(event)) return 'doubted';
  const isOfOldPolicy = event.policyVersion < rules.materialVersion;
  return isOfOldPolicy || isOutdated(terms, event.definition) ? 'policy-outdated' : 'granted';
}

const WITHOUT_OWN_ENTRY: ReadonlySet<Reason> = new Set(['never-asked', 'unknown-purpose', 'erased']);

/** Reasons in their order, first match wins. Only `granted` is allowed. */
export function decideConsent(purpose: string, state: PrincipalState, rules: ConsentRules, now: number) {
  const reason = reasonOf(purpose, state, rules, now);
  const { event, head } = state;
  const allowed = reason === 'granted';
  const hasOwnEntry =
    event !== null && !WITHOUT_OWN_ENTRY.has(reason) && !(state.withheld && reason === 'withdrawn');
  return {
    allowed,
    reason,
    proof: hasOwnEntry ? { seq: event.seq, hash: event.hash } : head,
    policyVersion: hasOwnEntry ? event.policyVersion : rules.currentVersion,
    expiresAt: allowed && event !== null ? event.expiresAt : null,
    /** True if a grant over a GPC signal allows it, under the policy `ask`. */
    overGpc: allowed && event?.overGpc === true && rules.termsOf(purpose)?.gpc === 'ask',
    /** Giver of the grant behind the decision. */
    given: (hasOwnEntry && event.given) || ('unknown' as const),
  };
}
