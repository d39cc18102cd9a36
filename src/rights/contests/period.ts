import { DAY, HOUR } from '../../lib/clock.ts';
import type { RightsProfile } from '../../tenants/settings.ts';

/** The periods of the laws, and how long it is until a due date. Pure. */

/**
 * One calendar month on, in UTC: the same day and time of the next month, or its last day (Regulation
 * 1182/71, article 3(2)(c); GDPR article 12(3)).
 * @param at epoch milliseconds
 */
export function oneMonthAfter(at: number): number {
  const from = new Date(at);
  const year = from.getUTCFullYear();
  const month = from.getUTCMonth() + 1;
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const time = at - Date.UTC(year, from.getUTCMonth(), from.getUTCDate());
  return Date.UTC(year, month, Math.min(from.getUTCDate(), lastDay)) + time;
}

const afterDays = (days: number) => (at: number) => at + days * DAY;

/**
 * `extendDays`: days by which an answer may be extended, once; 0: never. `dueAt` takes and returns epoch
 * milliseconds.
 */
type Periods = Readonly<{ dueAt: (at: number) => number; extendDays: number }>;

export const PERIODS: Readonly<Record<RightsProfile, Periods>> = {
  // Article 12(3): one month, and two further months.
  gdpr: { dueAt: oneMonthAfter, extendDays: 61 },
  // California, 11 CCR section 7021(b): 45 calendar days, and 45 more.
  ccpa: { dueAt: afterDays(45), extendDays: 45 },
  // India, DPDP Rules 2025, rule 14: 90 days at most, which nothing extends.
  dpdp: { dueAt: afterDays(90), extendDays: 0 },
  // United Kingdom, UK GDPR articles 12(3) and 12A: one month, and two further months.
  uk: { dueAt: oneMonthAfter, extendDays: 61 },
};

/**
 * A complaint is acknowledged within 30 days that begin when it is received (Data Protection Act 2018,
 * section 164A(3)).
 */
export const acknowledgeBy = afterDays(30);

/**
 * The days that do not count: the day on which the person is asked, the day of their answer, and all between
 * (UK GDPR article 12A), in UTC.
 */
export const pausedMs = (from: number, to: number): number => (dayOf(to) - dayOf(from) + 1) * DAY;

export const dayOf = (at: number): number => Math.floor(at / DAY);

/** The longest time from filing to the due date of a case that was never paused: a month and 61 days. */
export const LONGEST_MS = 92 * DAY;
/** A due date is soon from this many days before it. */
export const SOON_DAYS = 7;

/**
 * @returns the time until a due date, or since it passed, in whole units, rounded down so that nobody is
 * promised too much time. 0 hours is less than one
 */
export function untilDue(dueAt: number, now: number) {
  const isLate = dueAt < now;
  const gap = Math.abs(dueAt - now);
  return gap >= DAY
    ? ({ late: isLate, unit: 'days', n: Math.floor(gap / DAY) } as const)
    : ({ late: isLate, unit: 'hours', n: Math.floor(gap / HOUR) } as const);
}
