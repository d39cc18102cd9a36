import { describe, expect, it } from 'vitest';
import { RULES } from '../../../src/ingest/verdict/classify.ts';
import { ruleText, VERDICT_WORDS } from '../../../src/ingest/verdict/verdict-words.ts';
import { PEOPLE_LANGUAGES } from '../../../src/lib/languages.ts';
import { piecesOf } from '../../../src/lib/people/words.ts';

/** The reasons of a verdict in the six languages of people's pages. */

const placesOf = (text: string): readonly string[] =>
  piecesOf(text)
    .flatMap((piece) => ('place' in piece ? [piece.place] : []))
    .toSorted();

describe('the words of a verdict', () => {
  it.each(PEOPLE_LANGUAGES)('%s has one text per rule of the table, and each text once', (language) => {
    const { rules } = VERDICT_WORDS[language];
    expect(Object.keys(rules).toSorted()).toEqual(RULES.map(({ id }) => id).toSorted());
    expect(new Set(Object.values(rules)).size).toBe(RULES.length);
    for (const text of Object.values(rules)) expect(text).toMatch(/^\p{Lu}.{10,140}\.$/u);
    expect(ruleText('A99', language)).toContain('A99');
  });

  it('no two languages have the same text, and none loses a place of English', () => {
    const texts = PEOPLE_LANGUAGES.map((language) => {
      const { rules, sentences } = VERDICT_WORDS[language];
      return { language, words: new Map(Object.entries({ ...rules, ...sentences })) };
    });
    for (const [key, english] of Object.entries({
      ...VERDICT_WORDS.en.rules,
      ...VERDICT_WORDS.en.sentences,
    })) {
      const all = texts.map(({ words }) => words.get(key) ?? '');
      expect({ key, distinct: new Set(all).size }).toEqual({ key, distinct: PEOPLE_LANGUAGES.length });
      for (const text of all)
        expect({ key, places: placesOf(text) }).toEqual({ key, places: placesOf(english) });
    }
  });

  it('a text accuses nobody and names no place', () => {
    for (const language of PEOPLE_LANGUAGES)
      for (const text of Object.values(VERDICT_WORDS[language].rules))
        expect(text).not.toMatch(
          /(?<!\p{L})(?:you are|Sie sind|vous êtes|usted es|Lei è|jesteś|bot|fraud|Betrug|fraude|frode|oszust\p{L}*)(?!\p{L})/iu,
        );
  });
});
