import type { PeopleLanguage } from '../languages.ts';
import * as de from './de.ts';
import * as en from './en.ts';
import * as es from './es.ts';
import * as fr from './fr.ts';
import * as it from './it.ts';
import * as pl from './pl.ts';
import staffDe from './staff/de.json' with { type: 'json' };
import staffEn from './staff/en.json' with { type: 'json' };
import staffEs from './staff/es.json' with { type: 'json' };
import staffFr from './staff/fr.json' with { type: 'json' };
import staffIt from './staff/it.json' with { type: 'json' };
import staffPl from './staff/pl.json' with { type: 'json' };
import { fillWords, type PageKey, type PageWords, type Piece, piecesOf, type ScriptWords } from './words.ts';

/** The texts of people's pages, and of set-up and sign-in (`staff`), in the language of a request. */

type StaffWords = Readonly<Record<keyof typeof staffEn, string>>;
export type TextKey = PageKey | keyof StaffWords;

interface Language {
  readonly PAGE: PageWords & StaffWords;
  readonly SCRIPT: ScriptWords;
}

const joined = (
  { PAGE, SCRIPT }: { readonly PAGE: PageWords; readonly SCRIPT: ScriptWords },
  staff: StaffWords,
): Language => ({ PAGE: { ...PAGE, ...staff }, SCRIPT });

export const PEOPLE_WORDS: Readonly<Record<PeopleLanguage, Language>> = {
  en: joined(en, staffEn),
  de: joined(de, staffDe),
  fr: joined(fr, staffFr),
  es: joined(es, staffEs),
  it: joined(it, staffIt),
  pl: joined(pl, staffPl),
};

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
  readonly say: (key: TextKey, values?: Readonly<Record<string, string | number>>) => string;
  /** The text in pieces, where a value is an element. */
  readonly pieces: (key: TextKey) => readonly Piece[];
}

/** Speaks one language. Templates are not typed, so an unknown key throws. */
export function speakerOf(lang: PeopleLanguage): Speaker {
  const read = (key: TextKey): string => {
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
