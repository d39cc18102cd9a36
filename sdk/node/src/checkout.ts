import type { Verdict } from './types.ts';

/** A verdict as advice to a checkout. It never refuses, and whatever goes wrong is `no-verdict`. */

export type CheckoutAdvice = 'proceed' | 'step-up' | 'no-verdict';

export interface CheckoutOptions {
  /** The longest time that buying waits for gpd: an integer of 1 to 60000, by default 500. */
  readonly deadlineMs?: number | undefined;
  /** The order, as the page named it in `identify({ context })`. A verdict for anything else is none. */
  readonly context?: string | undefined;
  /** Cancels at once; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** A visitor can send the id of an old visit. The page calls `identify` or `update` again at the checkout. */
const MAX_AGE_MS = 30 * 60_000;

/** @param now milliseconds since the epoch */
export function adviceOf(verdict: Verdict, now: number, context: string | undefined): CheckoutAdvice {
  if (context !== undefined && verdict.context !== context) return 'no-verdict';
  const age = now - Date.parse(verdict.decidedAt);
  // A verdict under an objection must not be acted on.
  if (verdict.restricted || Number.isNaN(age) || age > MAX_AGE_MS) return 'no-verdict';
  return verdict.class === 'human' ? 'proceed' : 'step-up';
}
