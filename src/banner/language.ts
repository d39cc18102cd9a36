/** Languages that have a file of words; the build hands them in. */
declare const LANGUAGES: readonly string[];

const RIGHT_TO_LEFT = /^(?:ar|he|fa|ur)$/;

export interface Language {
  /** As it was asked for, for dates and lists. */
  readonly tag: string;
  /** Its primary subtag, in small letters. */
  readonly code: string;
}

/** The snippet's own, the page's, the person's; the first that there are words for. English else. */
export function pickLanguage(wanted: readonly (string | null | undefined)[]): Language {
  for (const tag of wanted) {
    const code = /^[a-z]{2,3}(?=-|$)/i.exec(tag ?? '')?.[0].toLowerCase();
    if (tag && code && LANGUAGES.includes(code)) return { tag: isTag(tag) ? tag : code, code };
  }
  return { tag: 'en', code: 'en' };
}

function isTag(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length > 0;
  } catch {
    return false;
  }
}

export const directionOf = (code: string): 'ltr' | 'rtl' => (RIGHT_TO_LEFT.test(code) ? 'rtl' : 'ltr');
