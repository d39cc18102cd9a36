import { HOLDABLE } from '../subject-folds.ts';
import { DEFENCE_BASIS, isIncomplete, type ScopeResult } from './erasure.ts';

/** How far an erasure came, in the words of staff. Pure. */

export type ErasureState = 'complete' | 'partly' | 'incomplete';

type Scopes = readonly ScopeResult[];

/** A legal hold, and not the defence that `/me forget` leaves a person. */
const isHeld = ({ scope, action, basis }: ScopeResult): boolean =>
  action === 'retained' && HOLDABLE.includes(scope) && basis !== DEFENCE_BASIS;

/** Rows that a legal hold kept. */
export const heldRows = (scopes: Scopes): number =>
  scopes.reduce((sum, result) => sum + (isHeld(result) ? result.count : 0), 0);

export function erasureState(scopes: Scopes): ErasureState {
  if (isIncomplete(scopes)) return 'incomplete';
  return heldRows(scopes) > 0 ? 'partly' : 'complete';
}
