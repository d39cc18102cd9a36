/** The languages in which gpd writes to people, and the one that a request asks for. */

export const PEOPLE_LANGUAGES = ['en', 'de', 'fr', 'es', 'it', 'pl'] as const;
export type PeopleLanguage = (typeof PEOPLE_LANGUAGES)[number];

/** @param lang of a query, as it came */
export const chosenLanguage = (lang: unknown): PeopleLanguage | null =>
  PEOPLE_LANGUAGES.find((language) => language === lang) ?? null;

/** `x` is a language that gpd writes in; anything else, also nothing, is English. */
export const languageOf = (text: string | null): PeopleLanguage => chosenLanguage(text) ?? 'en';

/** A browser sends fewer; the rest of a longer header is ignored. */
const MAX_RANGES = 30;

/**
 * The best language of an `Accept-Language` header (RFC 9110 section 12.5.4): the highest weight, then the
 * first. English if it names none of them, or there is no header.
 */
export function preferredLanguage(header: string | null): PeopleLanguage {
  const ranges = (header ?? '').split(',', MAX_RANGES).map((range) => {
    const [tag = '', ...parameters] = range
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/);
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    const q = weight === undefined ? 1 : Number(weight);
    return { language: tag.split('-', 1)[0] ?? '', q: q > 0 && q <= 1 ? q : 0 };
  });
  const known = ranges.filter(({ language, q }) => q > 0 && languageOf(language) === language);
  return languageOf(known.toSorted((a, b) => b.q - a.q)[0]?.language ?? null);
}

/** `?lang=` first, then the header. @param lang of the query, as it came */
export const requestLanguage = (lang: unknown, header: string | null): PeopleLanguage =>
  chosenLanguage(lang) ?? preferredLanguage(header);
