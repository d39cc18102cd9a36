import type { Attested, ConsentState, SmartSignals, VisitorClass } from '../schema/responses.ts';

export type RuleClass = Exclude<VisitorClass, 'declared_agent'>;

export interface FiredRule {
  readonly id: string;
  readonly weight: number;
  /** What it counted as: A automation, T tamper, M medium, W weak. */
  readonly kind: 'A' | 'T' | 'M' | 'W';
}

/** What would have changed the class that the rules gave: said to the person concerned and to the reviewer. */
export interface Counterfactual {
  /** Rules each of which alone made the difference, with the class there would have been without it. */
  readonly decisive: readonly { readonly id: string; readonly class: RuleClass }[];
  /** When no single rule made the difference: the class without any of them. */
  readonly withoutAll: RuleClass | null;
}

/** What is ledgered of a request. It holds rule ids and weights, never a signal's value. */
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
  readonly consentState: ConsentState;
  readonly rules: readonly FiredRule[];
  /** Absent where no strong rule fired. */
  readonly counterfactual?: Counterfactual;
  readonly defenses: readonly string[];
  readonly overridden: boolean;
  /** Automation of the operator's own. */
  readonly monitor: boolean;
  /** The bundle alone forbade `human`. */
  readonly incomplete: boolean;
  readonly policyVersion: string;
  /** Absent where no key of the device was proven. */
  readonly attested?: Attested;
  /** The consent that this verdict cast doubt on: its entry of the log. */
  readonly grantSeq?: number;
}
