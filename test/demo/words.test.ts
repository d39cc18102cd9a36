import { expect, it } from 'vitest';
import { SHOP_WORDS, shopText } from '../../src/demo/shop-words.ts';
import { PEOPLE_LANGUAGES } from '../../src/lib/languages.ts';

/** The shop of the demo in the languages of people's pages. */

const entriesOf = (language: (typeof PEOPLE_LANGUAGES)[number]): [key: string, text: string][] =>
  Object.entries(SHOP_WORDS[language]).flatMap(([part, texts]) =>
    Object.entries(texts).map(([key, text]): [string, string] => [`${part}.${key}`, text]),
  );
const placesOf = (text: string): string => (text.match(/\{\w+\}/g) ?? []).toSorted().join();

it.each(PEOPLE_LANGUAGES.filter((language) => language !== 'en'))(
  '%s has each text of the shop, with its places, and none in English',
  (language) => {
    const words = new Map(entriesOf(language));
    for (const [key, english] of entriesOf('en')) {
      const text = words.get(key) ?? '';
      expect({ key, places: placesOf(text) }).toEqual({ key, places: placesOf(english) });
      expect({ key, text }).not.toEqual({ key, text: english });
    }
    expect(words.size).toBe(entriesOf('en').length);
  },
);

it('a template names texts that exist', () => {
  expect(() => shopText('de', 'nothing')).toThrow('nothing');
});
