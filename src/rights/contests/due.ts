import { DAY, HOUR } from '../../lib/clock.ts';

/**
 * One calendar month on, in UTC: the same day and time of the next month, or its last day (Regulation 1182/71, article
 * 3(2)(c); GDPR article 12(3)).
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

/** What is left until a due date, or how long ago it passed; whole units, rounded down, so that no time is promised that is not there. */
export interface TimeLeft {
  readonly late: boolean;
  readonly unit: 'days' | 'hours';
  /** 0 hours: less than one. */
  readonly n: number;
}

export function due(dueAt: number, now: number): TimeLeft {
  const late = dueAt < now;
  const gap = Math.abs(dueAt - now);
  return gap >= DAY
    ? { late, unit: 'days', n: Math.floor(gap / DAY) }
    : { late, unit: 'hours', n: Math.floor(gap / HOUR) };
}
