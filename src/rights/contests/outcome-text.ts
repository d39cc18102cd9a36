import { isReconciled } from '../../ingest/decisions-service.ts';
import type { Outcome } from '../../schema/rights.ts';
import { quotedClass } from '../dsar/dsar.ts';

/** What an outcome means for the decision, of which some stay what they are. */
export function outcomeText(outcome: Outcome, decided: string): string {
  if (outcome === 'upheld') return 'the decision stands';
  if (isReconciled(decided)) return 'the decision no longer stands; it will count as a person';
  return `the objection is right; the decision said ${quotedClass(decided)}, and it stays that`;
}
