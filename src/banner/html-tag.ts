import { attempt } from '../browser/page.ts';

/**
 * The key and the language in the snippet's tag. A key that cannot work gets a line in the page's console,
 * without the key.
 */

const PUBLISHABLE = /^gpd_pk_[\w-]{43}$/;

/** @returns null if the key may be sent. A secret key is never sent: anyone can read it in the page. */
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

export function logLine(line: string): void {
  // biome-ignore lint/suspicious/noConsole: developers of the page look there
  console.error(`gpd: ${line}.`);
}

export const logProblem = (line: string): void => logLine(`no consent banner: ${line}`);

export function explainProblem(problem: string): void {
  const away = `gpd is away or blocked, or ${location.origin} is not one of the tenant’s origins`;
  const reason = LINES[problem] ?? (problem === 'unreachable' ? away : 'gpd refused to say what to ask');
  logProblem(`${reason} (${problem})`);
}

/** The languages that have words, with spaces between them; the build defines them. */
declare const LANGUAGES: string;

const RIGHT_TO_LEFT = /^(?:ar|he|fa|ur)$/;

/**
 * Picks the first preferred language that has words, otherwise English.
 * @returns the full tag, for dates and lists, and its primary subtag in lower case
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
