import { DAY, HOUR } from '../../lib/clock.ts';
import type { RightsProfile } from '../../tenants/settings.ts';

/**
 * One calendar month on, in UTC: the same day and time of the next month, or its last day (Regulation 1182/71, article
 * 3(2)(c); GDPR article 12(3)).
 * @param at epoch milliseconds
 */
function oneMonthAfter(at: number): number {
  const from = new Date(at);
  const year = from.getUTCFullYear();
  const month = from.getUTCMonth() + 1;
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const time = at - Date.UTC(year, from.getUTCMonth(), from.getUTCDate());
  return Date.UTC(year, month, Math.min(from.getUTCDate(), lastDay)) + time;
}

const afterDays = (days: number) => (at: number) => at + days * DAY;

/** By how many days an answer may be extended, once; 0: not at all. `dueAt` takes and gives epoch milliseconds. */
type Periods = Readonly<{ dueAt: (at: number) => number; extendDays: number }>;

export const PERIODS: Readonly<Record<RightsProfile, Periods>> = {
  // Article 12(3): one month, and two further months.
  gdpr: { dueAt: oneMonthAfter, extendDays: 61 },
  // California, 11 CCR section 7021(b): 45 calendar days, and 45 more.
  ccpa: { dueAt: afterDays(45), extendDays: 45 },
  // India, DPDP Rules 2025, rule 14: 90 days at most, which nothing extends.
  dpdp: { dueAt: afterDays(90), extendDays: 0 },
};

/** Nothing is due later than that after it was filed: a month and 61 days. */
export const LONGEST_MS = 92 * DAY;
/** From here on a due date is soon. */
export const SOON_DAYS = 7;

/**
 * What is left until a due date, or how long ago it passed; whole units, rounded down, so that no time is promised that is not there.
 * 0 hours: less than one.
 */
export function due(dueAt: number, now: number) {
  const late = dueAt < now;
  const gap = Math.abs(dueAt - now);
  return gap >= DAY
    ? ({ late, unit: 'days', n: Math.floor(gap / DAY) } as const)
    : ({ late, unit: 'hours', n: Math.floor(gap / HOUR) } as const);
}
