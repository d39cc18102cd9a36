import { z } from 'zod';
import { cookieValues } from '../http/request.ts';
import { MINUTE } from '../lib/clock.ts';
import { decryptText, encryptText } from '../lib/crypto.ts';
import { cookieNames, formatCookie } from './cookies.ts';
import type { ConsoleVisit } from './session-guard-service.ts';

/**
 * Tells the next page once what an act has done. An address must not say it: anybody can send one, and a
 * reload repeats it. The message is encrypted for one session and one page.
 */

const LIFE_MS = MINUTE;

const flashSchema = z.object({
  done: z.string(),
  /** Receipts of erasures that a released hold had limited. */
  limited: z.array(z.string()),
  /** The contest that was ruled on; the page shows the next one. */
  decided: z.string().nullable(),
  expiresAt: z.int(),
});
export type Flash = Pick<z.output<typeof flashSchema>, 'done' | 'limited' | 'decided'>;

type FlashVisit = Pick<ConsoleVisit, 'context' | 'request' | 'response' | 'session' | 'now'>;

const pathOf = (address: string): string => address.split(/[?#]/, 1)[0] ?? '';

const contextOf = ({ session }: FlashVisit, path: string): string =>
  `gpd/console-flash/v1|${session.hash}|${path}`;

/** Redirects to a page of the console, which says what was done. */
export function redirectDone(
  visit: FlashVisit,
  address: string,
  done: string,
  { limited = [], decided = null }: Partial<Omit<Flash, 'done'>> = {},
): void {
  const { context, response, now } = visit;
  const { flash, secure } = cookieNames(context.origin());
  const text = JSON.stringify({ done, limited, decided, expiresAt: now + LIFE_MS });
  const value = encryptText(context.keys.flash, context.random, contextOf(visit, pathOf(address)), text);
  response.append('set-cookie', formatCookie(flash, value, LIFE_MS, secure)).redirect(303, address);
}

/** @returns the message for this page, which is then deleted; null without one */
export function takeFlash(visit: FlashVisit): Flash | null {
  const { context, request, response, now } = visit;
  const { flash, secure } = cookieNames(context.origin());
  const [value] = cookieValues(request.headers.cookie, flash);
  const path = pathOf(request.originalUrl);
  const text = value === undefined ? null : decryptText(context.keys.flash, contextOf(visit, path), value);
  const { data } = flashSchema.safeParse(text === null ? null : JSON.parse(text));
  if (!data || now >= data.expiresAt) return null;
  response.append('set-cookie', formatCookie(flash, '', 0, secure));
  return data;
}
