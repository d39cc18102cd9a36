import { COUNT_CAP, countWaiting, openByDue } from '../rights/contests/queue-store.ts';
import { listHolds } from '../rights/erase/hold-store.ts';
import type { Context, Staff } from './context-service.ts';
import { countWaitingErasures } from './overview-store.ts';

/** Counts what waits behind the places of the sidebar, for the staff member who may open them. */

/** Holds and erasures that wait are few; two digits are enough in a sidebar. */
const FEW_CAP = 99;

/** @returns null for a place that this role cannot open */
export async function readPlaceCounts(
  { database, clock }: Pick<Context, 'database' | 'clock'>,
  { kid, role, ref: me }: Staff,
) {
  const now = clock();
  const readOpen = () =>
    openByDue(database, kid, [
      [0, now],
      [now, Number.MAX_SAFE_INTEGER],
    ]);
  const [due, waiting, holds, erasures] = await Promise.all([
    role === 'operator' ? null : readOpen(),
    role === 'operator' ? null : countWaiting(database, { kid, me, now }),
    role === 'dpo' ? listHolds(database, kid, { limit: FEW_CAP + 1 }) : null,
    role === 'dpo' ? countWaitingErasures(database, kid, FEW_CAP) : null,
  ]);
  const [overdue = 0, later = 0] = due ?? [];
  return {
    open: due && countText(overdue + later, COUNT_CAP),
    isOverdue: overdue > 0,
    waiting: waiting && countText(waiting, COUNT_CAP),
    /** Erasures that are not finished: open objections are counted at their own place. */
    requests: erasures && countText(erasures.held + erasures.unfinished, FEW_CAP),
    holds: holds && countText(holds.length, FEW_CAP),
  };
}

/** Nothing is shown for none. */
function countText(count: number, cap: number): string | null {
  if (count === 0) return null;
  return count > cap ? `${cap}+` : String(count);
}
