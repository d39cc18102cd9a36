import { attempt } from '../browser/page.ts';

/**
 * The snippet's tag: its key, with a line in the page's console where the key cannot work, and the language. No line repeats a key.
 */

const PUBLISHABLE = /^gpd_pk_[\w-]{43}$/;

/** @returns null where the key may be sent: one of another scope never is, since anyone can read it in the page */
export function keyProblem(key: string): 'no-key' | 'secret-key' | 'invalid-key' | null {
  if (PUBLISHABLE.test(key)) return null;
  if (key === '') return 'no-key';
  return /^gpd_(?!pk_)/.test(key) ? 'secret-key' : 'invalid-key';
}

const LINES: Readonly<Record<string, string>> = {
  'no-key': 'its script names no key. Add data-key, or ?key= to the script’s address',
  'secret-key': 'its key is a secret one, which anyone can read here. Revoke it, and use a publishable key',
  'invalid-key': 'its key is not a publishable key (gpd_pk_ and 43 characters)',
  'insecure-context': 'this page is neither https nor localhost',
  unauthenticated: 'its key is not known here, or was revoked',
};

export function say(line: string): void {
  // biome-ignore lint/suspicious/noConsole: the developer of a page looks there
  console.error(`gpd: no consent banner: ${line}.`);
}

/** @param origin the page's own */
export function sayProblem(problem: string, origin: string): void {
  const away = `gpd is away or blocked, or ${origin} is not one of the tenant’s origins`;
  const reason = LINES[problem] ?? (problem === 'unreachable' ? away : 'gpd refused to say what to ask');
  say(`${reason} (${problem})`);
}

/** Languages that have a file of words; the build hands them in. */
declare const LANGUAGES: readonly string[];

const RIGHT_TO_LEFT = /^(?:ar|he|fa|ur)$/;

/**
 * The snippet's own, the page's, the person's; the first that there are words for. English else.
 * @returns the tag as it was asked for, for dates and lists, and its primary subtag in small letters
 */
export function pickLanguage(preferred: readonly (string | null | undefined)[]) {
  for (const tag of preferred) {
    const code = /^[a-z]{2,3}(?=-|$)/i.exec(tag ?? '')?.[0].toLowerCase();
    if (!tag || !code || !LANGUAGES.includes(code)) continue;
    return { tag: attempt(() => Intl.getCanonicalLocales(tag)) ? tag : code, code };
  }
  return { tag: 'en', code: 'en' };
}

export const directionOf = (code: string): 'ltr' | 'rtl' => (RIGHT_TO_LEFT.test(code) ? 'rtl' : 'ltr');
