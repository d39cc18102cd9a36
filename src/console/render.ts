import type { Response } from 'express';
import { AUDIT_ACTIONS } from '../audit/audit.ts';
import { type Clock, DAY, HOUR, isoTime, MINUTE } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { due, SOON_DAYS } from '../rights/contests/contest.ts';
import type { Translate } from './strings-files.ts';
import { excerpt, visible } from './text.ts';

/** Pages: what every template may use, and the headers that every page carries. */
export type Render = (
  response: Response,
  view: string,
  values?: Readonly<Record<string, unknown>>,
  status?: number,
) => void;

/** Another policy than the usual one, of the answer's nonce. */
export type Policy = (nonce: string) => string;

/** Nothing but what carries this answer's nonce; no framing, no inline code, forms to ourselves alone. */
export function usualPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "img-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** In the viewer's zone where the script runs; without it in UTC, and it says so. */
function utc(at: number): string {
  return `${isoTime(at).slice(0, 16).replace('T', ' ')} UTC`;
}

export function makeRender({ t, random, clock }: { t: Translate; random: Random; clock: Clock }): Render {
  const number = new Intl.NumberFormat('en-US');
  return (response, view, values = {}, status = 200) => {
    const nonce = random(16).toString('base64');
    const now = clock();
    const policy = (values['policy'] as Policy | undefined) ?? usualPolicy;
    response.status(status).set({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy(nonce),
      'cache-control': 'no-store',
      // Under no-referrer browsers send `Origin: null` with a form, and every form would be refused.
      'referrer-policy': 'same-origin',
    });
    response.render(`console/${view}`, {
      staff: null,
      csrf: '',
      here: '',
      ...response.locals,
      ...values,
      t,
      nonce,
      now,
      utc,
      iso: isoTime,
      num: (value: number) => number.format(value),
      due: (at: number) => dueIn(t, at, now),
      ago: (at: number) => ago(t, at, now),
      // A row that a newer node wrote may be of a kind that has no words here.
      actionText: (action: string) =>
        (AUDIT_ACTIONS as readonly string[]).includes(action) ? t(`audit.${action}`) : action,
      visible,
      excerpt,
    });
  };
}

const URGENT_DAYS = 2;

/** `due` of rights/due.ts, in words and in a colour; the command line says the same words. */
export function dueIn(t: Translate, dueAt: number, now: number) {
  const { late, unit, n } = due(dueAt, now);
  const key = `due.${late ? 'late-' : ''}${unit}`;
  const text = unit === 'hours' && n === 0 ? t(`${key}.none`) : t(key, { n });
  if (late) return { text, level: 'late' };
  const days = unit === 'days' ? n : 0;
  return { text, level: days < URGENT_DAYS ? 'urgent' : days < SOON_DAYS ? 'soon' : 'calm' };
}

/** How long ago, in the largest unit that fits. */
function ago(t: Translate, at: number, now: number): string {
  const past = Math.max(0, now - at);
  if (past < MINUTE) return t('ago.now');
  if (past < HOUR) return t('ago.minutes', { n: Math.floor(past / MINUTE) });
  if (past < 2 * DAY) return t('ago.hours', { n: Math.floor(past / HOUR) });
  return t('ago.days', { n: Math.floor(past / DAY) });
}
