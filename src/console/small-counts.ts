import { say } from './words.ts';

/** Writes counts and shares of visits without those of few people, who are easily identified. */

/** True for a count from 1 to floor - 1. */
const isFew = (n: number, floor: number): boolean => n > 0 && n < floor;

/**
 * Shows a share of visits. The rest is a count too: of 120 visits, 107 with a signal would tell that 13 came
 * without.
 * @returns a sentence with its number of days
 */
export function shareOf(n: number, all: number, floor: number, days: number): string {
  if (isFew(all, floor)) return say('fewer than {floor} in {days} days', { floor, days });
  const isRestFew = isFew(all - n, floor);
  const share = isFew(n, floor)
    ? isRestFew
      ? 'some'
      : say('fewer than {floor}', { floor })
    : isRestFew
      ? 'nearly all'
      : say('{n}', { n });
  return say('{share} of {all} in {days} days', { share, all, days });
}

/**
 * Rounds down to a power of ten: the exact number of bundles less the visits that are shown would be the
 * hidden ones.
 */
export function roughOf(n: number, floor: number): string {
  if (n === 0) return '0';
  if (n < floor) return say('under {floor}', { floor });
  return say('at least {n}', { n: Math.max(floor, 10 ** Math.floor(Math.log10(n))) });
}
