import type { Response } from 'express';
import { speakTo } from '../http/people.ts';
import { type Clock, isoTime } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { ENGLISH } from '../lib/people/say.ts';
import { excerpt, visibleText } from '../lib/text.ts';
import { dueIn, say, timeAgo, WORDS } from './words.ts';

/** Renders a page of the console with the values and headers that all pages share. */

export type Render = (
  response: Response,
  view: string,
  values?: Readonly<Record<string, unknown>>,
  status?: number,
) => void;

/** Builds a Content-Security-Policy from the nonce of the answer. */
export type Policy = (nonce: string) => string;

/**
 * Only scripts and styles with the nonce of this answer run;
 * pages cannot be framed, and forms stay within the origin.
 */
export function usualPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "img-src 'self'",
    "font-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** The page's script replaces this by the time in the viewer's zone. */
function formatUtc(at: number): string {
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
    const locals = { staff: null, ...response.locals, ...values };
    response.render(`console/${view}`, {
      csrf: '',
      here: '',
      ...locals,
      // The console is in English. Pages without a session speak the language of their reader.
      speaker: locals.staff ? ENGLISH : speakTo(response),
      hasSwitch: response.req.method === 'GET',
      words: WORDS,
      say,
      nonce,
      now,
      utc: formatUtc,
      iso: isoTime,
      num: (value: number) => number.format(value),
      due: (at: number) => dueIn(at, now),
      ago: (at: number) => timeAgo(at, now),
      // A newer node may have written an action for which this version has no words.
      actionText: (action: string) => (WORDS.audit as Readonly<Record<string, string>>)[action] ?? action,
      visible: visibleText,
      excerpt,
    });
  };
}
