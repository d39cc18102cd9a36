import { attempt } from './guarded.ts';

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
