import { attestationPurpose, createFirstPurpose, type Purpose } from '../tenants/purposes.ts';
import type { TenantSettings } from '../tenants/settings.ts';
import purposeTexts from './purpose-texts.json' with { type: 'json' };

/** The words of a purpose in the languages that the banner speaks. */

type Texts = Readonly<Record<string, readonly string[]>>;
type Words = Pick<Purpose, 'id' | 'title' | 'description'>;

const BUILT_IN: readonly Words[] = [createFirstPurpose(), attestationPurpose];
const TEXTS: Readonly<Record<string, Texts>> = purposeTexts;

/** The banner's languages other than English. */
const OTHER_LANGUAGES = Object.keys(purposeTexts['device-identification']);

/**
 * The title and description in each of the banner's languages other than English, if the purpose has gpd's
 * words. A tenant that changes them provides its translations.
 */
export function builtInTexts({ id, title, description }: Words): Texts | undefined {
  const hasWords = BUILT_IN.some(
    (purpose) => id === purpose.id && title === purpose.title && description === purpose.description,
  );
  return hasWords ? TEXTS[id] : undefined;
}

/** In another language than it was written in, unless gpd or the tenant translated it. */
export function wordsOf(purpose: Words, language: string): Pick<Purpose, 'title' | 'description'> {
  const texts = builtInTexts(purpose) ?? {};
  const [title, description] = (Object.hasOwn(texts, language) && texts[language]) || [];
  return { title: title ?? purpose.title, description: description ?? purpose.description };
}

/** @returns languages of the banner, without English, in which people read the purpose untranslated */
export function untranslatedLanguages(
  purpose: Words,
  texts: TenantSettings['banner.texts'],
): readonly string[] {
  if (builtInTexts(purpose)) return [];
  return OTHER_LANGUAGES.filter((language) => {
    const named = Object.hasOwn(texts, language) ? texts[language]?.purposes : undefined;
    return named === undefined || !Object.hasOwn(named, purpose.id);
  });
}
