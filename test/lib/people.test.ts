import { describe, expect, it } from 'vitest';
import { PEOPLE_LANGUAGES, requestLanguage } from '../../src/lib/languages.ts';
import { PAGE_WORDS, speakerOf } from '../../src/lib/people/say.ts';
import { piecesOf } from '../../src/lib/people/words.ts';

const OTHERS = PEOPLE_LANGUAGES.filter((language) => language !== 'en');
const KEYS = Object.keys(PAGE_WORDS.en) as (keyof typeof PAGE_WORDS.en)[];
const placesOf = (text: string): readonly string[] =>
  piecesOf(text)
    .flatMap((piece) => ('place' in piece ? [piece.place] : []))
    .toSorted();

/** Names and figures that are spelled alike in several languages. */
const SAME = new Set<string>();

describe('the texts of people’s pages', () => {
  it.each(OTHERS)('%s has the keys of English and their places, and is not English', (language) => {
    const words = PAGE_WORDS[language];
    expect(Object.keys(words).toSorted()).toEqual(KEYS.toSorted());
    const wrongPlaces = KEYS.filter(
      (key) => placesOf(words[key]).join() !== placesOf(PAGE_WORDS.en[key]).join(),
    );
    const untranslated = KEYS.filter((key) => words[key] === PAGE_WORDS.en[key] && !SAME.has(key));
    const blank = KEYS.filter((key) => words[key].trim() === '');
    expect({ wrongPlaces, untranslated, blank }).toEqual({ wrongPlaces: [], untranslated: [], blank: [] });
  });

  it('a template names keys that exist: anything else throws', () => {
    expect(() => speakerOf('de').say('no.such.key' as 'case.title')).toThrow('no.such.key');
    expect(speakerOf('en').say('case.title')).toBe('Your objection to an automated decision');
  });
});

describe('the language of a request', () => {
  it.each([
    ['de', 'fr', 'de'],
    ['xx', 'fr;q=0.5, pl', 'pl'],
    [undefined, 'ar', 'en'],
    [['de', 'fr'], null, 'en'],
  ] as const)('?lang=%s and Accept-Language %s: %s', (lang, header, expected) => {
    expect(requestLanguage(lang, header)).toBe(expected);
  });
});
