import type { ConsentState, SmartSignals, VisitorClass } from '../schema/responses.ts';

export interface FiredRule {
  readonly id: string;
  readonly weight: number;
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
  readonly policyVersion: string;
}
