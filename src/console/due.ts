import { DAY, HOUR, MINUTE } from '../lib/clock.ts';
import { due, SOON_DAYS } from '../rights/contests/due.ts';
import type { Translate } from './strings-files.ts';

/** What is left until a due date, in words and in a colour. */
export interface Due {
  readonly text: string;
  readonly level: 'calm' | 'soon' | 'urgent' | 'late';
}

const URGENT_DAYS = 2;

/** `due` of rights/due.ts, in words; the command line says the same ones. */
export function dueIn(t: Translate, dueAt: number, now: number): Due {
  const { late, unit, n } = due(dueAt, now);
  const key = `due.${late ? 'late-' : ''}${unit}`;
  const text = unit === 'hours' && n === 0 ? t(`${key}.none`) : t(key, { n });
  if (late) return { text, level: 'late' };
  const days = unit === 'days' ? n : 0;
  return { text, level: days < URGENT_DAYS ? 'urgent' : days < SOON_DAYS ? 'soon' : 'calm' };
}

/** How long ago, in the largest unit that fits. */
export function ago(t: Translate, at: number, now: number): string {
  const past = Math.max(0, now - at);
  if (past < MINUTE) return t('ago.now');
  if (past < HOUR) return t('ago.minutes', { n: Math.floor(past / MINUTE) });
  if (past < 2 * DAY) return t('ago.hours', { n: Math.floor(past / HOUR) });
  return t('ago.days', { n: Math.floor(past / DAY) });
}
