import type { AgentOutcome } from '../../agents/reasons.ts';
import type { Attested, ConsentState, SmartSignals, VisitorClass } from '../../schema/responses.ts';
import type { Classification, Counterfactual, FiredRule } from './classify.ts';
import { confidenceOf, type Identity, type KnownDevice } from './identity.ts';

/** The ledgered part of a request. It holds rule ids and weights, never a signal's value. */
export interface Verdict {
  readonly requestId: string;
  readonly decidedAt: number;
  readonly class: VisitorClass;
  /** Null when nobody was identified; the visitorId follows from it and the epoch. */
  readonly durable: string | null;
  readonly epoch: number | null;
  readonly confidence: number;
  readonly suspectScore: number;
  readonly smartSignals: SmartSignals;
  readonly needsAttestation: boolean;
  readonly declaredAgentId: string | null;
  /** The outcome of judging an agent's signature; absent without one. The agent does not get it. */
  readonly signature?: Pick<AgentOutcome, 'status' | 'reason'>;
  /** The row of the policy for agents that refused a request at the door; absent for a visit. */
  readonly door?: { readonly action: string; readonly row: number | null; readonly path: string };
  readonly consentState: ConsentState;
  readonly rules: readonly FiredRule[];
  /** Absent if no strong rule fired. */
  readonly counterfactual?: Counterfactual;
  readonly defenses: readonly string[];
  readonly overridden: boolean;
  /** True for automation that the operator declared. */
  readonly monitor: boolean;
  /** True if the bundle itself ruled out `human`. */
  readonly incomplete: boolean;
  readonly policyVersion: string;
  /** Absent if the device proved no passkey. */
  readonly attested?: Attested;
  /** The page's name for what this verdict is for; absent if its bundle had none. No rule reads it. */
  readonly context?: string;
  /** The consent that this verdict cast doubt on: its entry of the log. */
  readonly grantSeq?: number;
}

/** The class of refusals at the door in the database, which counts no visit by it. */
export const AT_DOOR = 'agent';

export const storedClass = (verdict: Verdict): string => (verdict.door ? AT_DOOR : verdict.class);

type AsGiven = 'requestId' | 'defenses' | 'needsAttestation' | 'consentState' | 'policyVersion';

export interface DecideInput extends Pick<Verdict, AsGiven | 'monitor' | 'incomplete'> {
  readonly now: number;
  readonly identity: Identity | null;
  readonly known: KnownDevice;
  readonly classification: Classification;
  /** `declared_agent` if and only if a signature verified (Web Bot Auth). */
  readonly agent: AgentOutcome;
  readonly grantSeq?: number | undefined;
  readonly context?: string | undefined;
}

/**
 * The maximum score with a privacy defense, a reviewer's override or on the operator's list (contract 3.4,
 * signals.md section 2).
 */
const CALM_SCORE = 0.2;

function finalClass(input: DecideInput): VisitorClass {
  if (input.agent.agent !== null) return 'declared_agent';
  return input.known.neverAutomation ? 'human' : input.classification.class;
}

function finalScore(input: DecideInput, visitorClass: VisitorClass): number {
  const { score, automation } = input.classification;
  const defended = input.defenses.length > 0 && !automation;
  const overridden = input.known.neverAutomation && visitorClass === 'human';
  return overridden || input.monitor || defended ? Math.min(score, CALM_SCORE) : score;
}

/**
 * Reads from a verdict who gave a consent. Only a signature or a rule of kind A proves a machine; people have
 * T and M too.
 */
export function readGiver({ class: by, rules }: Pick<Verdict, 'class' | 'rules'>): VisitorClass {
  const isProven = by !== 'undeclared_automation' || rules.some(({ kind }) => kind === 'A');
  return isProven ? by : 'unknown';
}

/** Combines identity, classification and a reviewer's override into the verdict that is stored. */
export function decide(input: DecideInput): Verdict {
  const { classification, identity, known } = input;
  const { agent, status, reason } = input.agent;
  const visitorClass = finalClass(input);
  const overridden = known.neverAutomation && visitorClass === 'human' && classification.class !== 'human';
  const giver = readGiver({ class: visitorClass, rules: classification.rules });
  const castsDoubtOnGrant = giver !== 'human' && giver !== 'unknown' && input.grantSeq !== undefined;
  const explained = input.defenses.length > 0;
  const smartSignals: SmartSignals = {
    bot:
      visitorClass === 'declared_agent'
        ? classification.automation
        : visitorClass === 'undeclared_automation',
    incognito: false,
    tampered: classification.inconsistency > 0 && !explained,
    inconsistency: classification.inconsistency,
  };
  return {
    requestId: input.requestId,
    decidedAt: input.now,
    class: visitorClass,
    durable: identity?.durable ?? null,
    epoch: identity?.epoch ?? null,
    confidence: confidenceOf(identity, known.seen),
    suspectScore: finalScore(input, visitorClass),
    smartSignals,
    needsAttestation: identity !== null && input.needsAttestation,
    declaredAgentId: agent,
    ...(status !== 'none' && { signature: { status, reason } }),
    consentState: input.consentState,
    rules: classification.rules,
    ...(classification.counterfactual && { counterfactual: classification.counterfactual }),
    defenses: input.defenses,
    overridden,
    monitor: input.monitor,
    incomplete: input.incomplete,
    policyVersion: input.policyVersion,
    ...(input.context !== undefined && { context: input.context }),
    ...(castsDoubtOnGrant && { grantSeq: input.grantSeq }),
  };
}

/** True if an overturned decision changes this class; people and declared agents keep theirs. */
export const isReconciled = (name: string): boolean => name === 'undeclared_automation' || name === 'unknown';

/**
 * Applies an overturned review: the decision no longer says automation, like later verdicts under the
 * override (contract 3.4).
 */
export function reconcile(verdict: Verdict): Verdict {
  if (!isReconciled(verdict.class)) return verdict;
  return {
    ...verdict,
    class: 'human',
    smartSignals: { ...verdict.smartSignals, bot: false },
    suspectScore: Math.min(verdict.suspectScore, CALM_SCORE),
  };
}
