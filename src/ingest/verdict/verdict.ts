import type { Attested, ConsentState, SmartSignals, VisitorClass } from '../../schema/responses.ts';
import type { Counterfactual, FiredRule } from './score.ts';

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
