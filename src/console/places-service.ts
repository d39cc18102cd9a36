import { COUNT_CAP, openByDue } from '../rights/contests/queue-store.ts';
import { listHolds } from '../rights/erase/hold-store.ts';
import type { Context, Staff } from './context-service.ts';

/** Counts what waits behind the places of the sidebar, for the staff member who may open them. */

/** Holds are few; two digits are enough in a sidebar. */
const HOLDS_CAP = 99;

/** @returns null for a place that this role cannot open */
export async function readPlaceCounts(
  { database, clock }: Pick<Context, 'database' | 'clock'>,
  { kid, role }: Staff,
) {
  const now = clock();
  const readOpen = () =>
    openByDue(database, kid, [
      [0, now],
      [now, Number.MAX_SAFE_INTEGER],
    ]);
  const [due, holds] = await Promise.all([
    role === 'operator' ? null : readOpen(),
    role === 'dpo' ? listHolds(database, kid, { limit: HOLDS_CAP + 1 }) : null,
  ]);
  const [overdue = 0, later = 0] = due ?? [];
  return {
    open: due && countText(overdue + later, COUNT_CAP),
    isOverdue: overdue > 0,
    holds: holds && countText(holds.length, HOLDS_CAP),
  };
}

/** Nothing is shown for none. */
function countText(count: number, cap: number): string | null {
  if (count === 0) return null;
  return count > cap ? `${cap}+` : String(count);
}
