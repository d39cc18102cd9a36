import type { PeopleLanguage } from '../languages.ts';
import * as de from './de.ts';
import * as en from './en.ts';
import * as es from './es.ts';
import * as fr from './fr.ts';
import * as it from './it.ts';
import * as pl from './pl.ts';
import { fillWords, type PageKey, type PageWords, type Piece, piecesOf, type ScriptWords } from './words.ts';

/** The texts of people's pages in the language of a request. */

interface Language {
  readonly PAGE: PageWords;
  readonly SCRIPT: ScriptWords;
}

export const PEOPLE_WORDS: Readonly<Record<PeopleLanguage, Language>> = { en, de, fr, es, it, pl };

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
  readonly say: (key: PageKey, values?: Readonly<Record<string, string | number>>) => string;
  /** The text in pieces, where a value is an element. */
  readonly pieces: (key: PageKey) => readonly Piece[];
}

/** Speaks one language. Templates are not typed, so an unknown key throws. */
export function speakerOf(lang: PeopleLanguage): Speaker {
  const read = (key: PageKey): string => {
    const text = PEOPLE_WORDS[lang].PAGE[key];
    if (text === undefined) throw new Error(`no text ${key}`);
    return text;
  };
  return {
    lang,
    say: (key, values) => fillWords(read(key), values),
    pieces: (key) => piecesOf(read(key)),
  };
}

export const ENGLISH = speakerOf('en');
