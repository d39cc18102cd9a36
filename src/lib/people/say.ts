import type { PeopleLanguage } from '../languages.ts';
import { PAGE as de } from './de.ts';
import { PAGE as en } from './en.ts';
import { PAGE as es } from './es.ts';
import { PAGE as fr } from './fr.ts';
import { PAGE as it } from './it.ts';
import { PAGE as pl } from './pl.ts';
import { fillWords, type PageKey, type PageWords, type Piece, piecesOf } from './words.ts';

/** The texts of people's pages in the language of a request. */

export const PAGE_WORDS: Readonly<Record<PeopleLanguage, PageWords>> = { en, de, fr, es, it, pl };

/** The languages by their own names, for the switch. */
export const LANGUAGE_NAMES: Readonly<Record<PeopleLanguage, string>> = {
  en: 'English',
  de: 'Deutsch',
  fr: 'Français',
  es: 'Español',
  it: 'Italiano',
  pl: 'Polski',
};

export interface Speaker {
  readonly lang: PeopleLanguage;
  say(key: PageKey, values?: Readonly<Record<string, string | number>>): string;
  /** The text in pieces, where a value is an element. */
  pieces(key: PageKey): readonly Piece[];
}

/** Speaks one language. Templates are not typed, so an unknown key throws. */
export function speakerOf(lang: PeopleLanguage): Speaker {
  const read = (key: PageKey): string => {
    const text = PAGE_WORDS[lang][key];
    if (text === undefined) throw new Error(`no text ${key}`);
    return text;
  };
  return {
    lang,
    say: (key, values) => fillWords(read(key), values),
    pieces: (key) => piecesOf(read(key)),
  };
}
