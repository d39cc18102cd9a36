import type { HistoryEvent, ProofRef } from './types.ts';

/** The events that the fake stores. */

export type Choice = 'granted' | 'denied' | 'withdrawn';

export interface Event extends ProofRef {
  readonly principalId: string;
  readonly purpose: string;
  readonly choice: Choice;
  readonly time: string;
  readonly policyVersion: number;
  readonly gpc: boolean;
  readonly over: { readonly overGpc?: true };
}

export const GENESIS: ProofRef = { seq: 0, hash: '0'.repeat(64) };
/** A fixed time, so that no test depends on the date. */
export const TIME = '2026-01-01T00:00:00.000Z';

export function historyOf({ seq, purpose, choice, time, policyVersion, gpc, over }: Event): HistoryEvent {
  const type = `consent.${choice}`;
  return { seq, type, purpose, time, policyVersion, gpc, source: 'backend', expiresAt: null, ...over };
}
