import type { ConsentState, SmartSignals, VisitorClass } from '../schema/responses.ts';

export interface FiredRule {
  readonly id: string;
  readonly weight: number;
  /** What it counted as: A automation, T tamper, M medium, W weak. */
  readonly kind: 'A' | 'T' | 'M' | 'W';
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
  readonly defenses: readonly string[];
  readonly overridden: boolean;
  /** Automation of the operator's own. */
  readonly monitor: boolean;
  /** The bundle alone forbade `human`. */
  readonly incomplete: boolean;
  readonly policyVersion: string;
}
