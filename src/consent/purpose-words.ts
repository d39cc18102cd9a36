import { createFirstPurpose, type Purpose } from '../tenants/purposes.ts';
import type { TenantSettings } from '../tenants/settings.ts';
import firstPurposeTexts from './first-purpose-texts.json' with { type: 'json' };

/** The words of a purpose in the languages that the banner speaks. */

/** Texts of the first purpose of every tenant, in the banner's languages other than English. */
export const FIRST_PURPOSE_TEXTS: Readonly<Record<string, readonly string[]>> = firstPurposeTexts;

type Words = Pick<Purpose, 'id' | 'title' | 'description'>;

/**
 * True if the purpose has gpd's words, which exist in every language. A tenant that changes them provides its
 * translations.
 */
export function hasFirstWords({ id, title, description }: Words): boolean {
  const purpose = createFirstPurpose();
  return id === purpose.id && title === purpose.title && description === purpose.description;
}

/** In another language than it was written in, unless gpd or the tenant translated it. */
export function wordsOf(purpose: Words, language: string): Pick<Purpose, 'title' | 'description'> {
  const texts = Object.hasOwn(FIRST_PURPOSE_TEXTS, language) ? FIRST_PURPOSE_TEXTS[language] : undefined;
  const [title, description] = (hasFirstWords(purpose) && texts) || [];
  return { title: title ?? purpose.title, description: description ?? purpose.description };
}

/** @returns languages of the banner, without English, in which people read the purpose untranslated */
export function untranslatedLanguages(
  purpose: Words,
  texts: TenantSettings['banner.texts'],
): readonly string[] {
  if (hasFirstWords(purpose)) return [];
  return Object.keys(FIRST_PURPOSE_TEXTS).filter((language) => {
    const named = Object.hasOwn(texts, language) ? texts[language]?.purposes : undefined;
    return named === undefined || !Object.hasOwn(named, purpose.id);
  });
}
