import { Refusal } from '../lib/errors.ts';
import type { OpenedToken, Presented } from './presented.ts';

/** A ceremony that failed, and how. */
export class Failed extends Error {
  override readonly name = 'Failed';
  readonly outcome: Outcome;

  constructor(outcome: Outcome) {
    super(outcome);
    this.outcome = outcome;
  }
}

export interface FailedDeps {
  readonly openToken: (presented: Presented) => OpenedToken | null;
  /** Of whose ceremony what came. */
  readonly onOutcome: (outcome: Outcome, kid: string) => void;
}

/** @throws {Refusal} `attestation-failed` for every failed ceremony alike */
export async function telling<T>(deps: FailedDeps, presented: Presented, ceremony: Promise<T>): Promise<T> {
  try {
    return await ceremony;
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    deps.onOutcome(error.outcome, deps.openToken(presented)?.kid ?? '');
    throw new Refusal('attestation-failed');
  }
}

/** The result of a ceremony; the client gets one refusal for all but the first two. */
export const OUTCOMES = [
  'created',
  'used',
  'malformed',
  'challenge',
  'signature',
  'unknown',
  'cloned',
  'replay',
] as const;
export type Outcome = (typeof OUTCOMES)[number];
