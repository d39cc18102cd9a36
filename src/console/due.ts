import { DAY, HOUR, MINUTE } from '../lib/clock.ts';
import type { Translate } from './strings.ts';

/** The clock of article 12(3): one month. In words, and in a colour beside them. */
export interface Due {
  readonly text: string;
  readonly level: 'calm' | 'soon' | 'urgent' | 'late';
}

const SOON_DAYS = 7;
const URGENT_DAYS = 2;

export function dueIn(t: Translate, dueAt: number, now: number): Due {
  const left = dueAt - now;
  if (left < 0) {
    const days = Math.floor(-left / DAY);
    const text = days === 0 ? t('due.late-today') : t('due.late', { n: days });
    return { text, level: 'late' };
  }
  const days = Math.floor(left / DAY);
  const hours = Math.max(1, Math.floor(left / HOUR));
  const text = days === 0 ? t('due.hours', { n: hours }) : t('due.days', { n: days });
  const level = days < URGENT_DAYS ? 'urgent' : days < SOON_DAYS ? 'soon' : 'calm';
  return { text, level };
}

/** How long ago, in the largest unit that fits. */
export function ago(t: Translate, at: number, now: number): string {
  const past = Math.max(0, now - at);
  if (past < MINUTE) return t('ago.now');
  if (past < HOUR) return t('ago.minutes', { n: Math.floor(past / MINUTE) });
  if (past < 2 * DAY) return t('ago.hours', { n: Math.floor(past / HOUR) });
  return t('ago.days', { n: Math.floor(past / DAY) });
}
