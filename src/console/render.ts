import type { Response } from 'express';
import { type Clock, isoTime } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { excerpt, visible } from './text.ts';
import { dueIn, say, timeAgo, WORDS } from './words.ts';

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

export function createRender({ random, clock }: { random: Random; clock: Clock }): Render {
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
      words: WORDS,
      say,
      nonce,
      now,
      utc,
      iso: isoTime,
      num: (value: number) => number.format(value),
      due: (at: number) => dueIn(at, now),
      ago: (at: number) => timeAgo(at, now),
      // A row that a newer node wrote may be of a kind that has no words here.
      actionText: (action: string) => (WORDS.audit as Readonly<Record<string, string>>)[action] ?? action,
      visible,
      excerpt,
    });
  };
}
