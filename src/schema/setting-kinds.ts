import { z } from 'zod';
import { parseDailyWindow } from '../lib/clock.ts';
import { succeeds } from '../lib/functions.ts';
import { isLoopback, parseRange } from '../lib/ip.ts';
import { parseUrl } from '../lib/text.ts';

/** The kinds of values that settings take. */

export interface RateSpec {
  readonly points: number;
  readonly seconds: number;
}

export const rate = z.string().transform((text, context): RateSpec | null => {
  if (text === 'off') return null;
  const match = /^(\d{1,9})\/(\d{1,6})$/.exec(text);
  const [points, seconds] = [Number(match?.[1]), Number(match?.[2])];
  if (match && points > 0 && seconds > 0) return { points, seconds };
  context.addIssue('write COUNT/SECONDS, for instance 600/60, or off');
  return z.NEVER;
});

export const wholeNumber = (min: number, max: number) =>
  z.coerce.number(`a whole number from ${min} to ${max}`).int().min(min).max(max);
/** A chance: 0 to 1. */
export const chance = z.coerce.number('a number from 0 to 1').min(0).max(1);
export const text = z.string().min(1);
export const words = z.union([
  z.array(z.string()),
  z.string().transform((text) => text.split(/[\s,]+/).filter((part) => part !== '')),
]);
const isRange = (text: string): boolean => succeeds(() => parseRange(text));
export const ranges = words.superRefine((texts, context) => {
  const bad = texts.find((text) => !isRange(text));
  if (bad !== undefined) context.addIssue(`${bad} is not an address or CIDR`);
});
export const flag = z.union(
  [z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')],
  'write true or false',
);

export const postgresUrl = z.string().superRefine((text, context) => {
  if (!/^postgres(?:ql)?:\/\/./.test(text)) context.addIssue('a URL that begins with postgres://');
  else if ((parseUrl(text)?.hash ?? '#') !== '')
    context.addIssue(
      'not a valid postgres:// URL: in its password write # as %23, / as %2F, ? as %3F, @ as %40 and % as %25',
    );
});

const httpUrl = z
  .string()
  .refine((text) => /^https?:$/.test(parseUrl(text)?.protocol ?? ''), 'an http or https URL')
  .transform((text) => text.replace(/\/+$/, ''));

/** `smtp://` takes STARTTLS, `smtps://` TLS from the first byte. What is wrong is said without the value: it may hold a password. */
export const smtpUrl = z.string().refine((text) => {
  const url = parseUrl(text);
  const { protocol = '', hostname = '', pathname = '', search = '', hash = '' } = url ?? {};
  return /^smtps?:$/.test(protocol) && hostname !== '' && /^\/?$/.test(pathname) && search + hash === '';
}, 'smtps://user:password@host:465 or smtp://host:587, without a path or a query');

/** `gpd@shop.example` or `Shop <gpd@shop.example>` */
export const mailFrom = z
  .string()
  .regex(/^(?:[^<>\p{Cc}]*<[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)$/u, 'an address, or Name <address>');

/** `VKEY@URL`: the key's own parts are looked at where it is used. */
export const witnesses = z
  .union([z.array(z.string()), z.string().transform((text) => text.split(',').map((part) => part.trim()))])
  .transform((texts) => texts.filter((text) => text !== '').map((text) => text.replace(/\/+$/, '')))
  .superRefine((texts, context) => {
    const bad = texts.find((text) => !/^[^+]+\+[0-9a-f]{8}\+[\w+/]+=*@https?:\/\/[^@?#\s]+$/.test(text));
    if (bad !== undefined)
      context.addIssue('write VKEY@URL, separated by commas; the URL without user or query');
    if (texts.length > 64) context.addIssue('at most 64 witnesses');
  });

/** An origin as browsers define it. It is printed and signed, so it must contain no secret. */
export const publicOrigin = httpUrl.refine((text) => {
  const { username, password, pathname, search, hash } = new URL(text);
  return [username, password, search, hash].every((part) => part === '') && pathname === '/';
}, 'an origin, https://host or https://host:port, without a user, a path or a query');

export const dailyWindow = z.string().transform((text, context) => {
  const window = parseDailyWindow(text);
  if (window) return window;
  context.addIssue('write HH:MM-HH:MM, for instance 02:00-04:00');
  return z.NEVER;
});

/** Kept exactly as given: a token's `iss` has to equal it, and some providers end theirs with a slash. */
export const issuer = z
  .string()
  .refine((text) => {
    const url = parseUrl(text);
    return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
  }, 'an issuer must be https, except on a loopback address')
  .refine((text) => !/[?#@\s]/.test(text), 'an issuer has no query, fragment, user or white space');

/** The name of a claim as it is, or a JSON pointer. */
export const claim = z
  .string()
  .regex(/^[^\p{Cc}]{1,256}$/u, 'the name of a claim, or a JSON pointer such as /realm_access/roles');
