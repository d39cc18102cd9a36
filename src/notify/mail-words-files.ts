import { readFileSync } from 'node:fs';
import { PEOPLE_LANGUAGES, type PeopleLanguage } from '../lib/languages.ts';

/**
 * The words of mails: one file per language, with one key per line, such as `person.read  Read more …`. Staff
 * gets English, as the console is; keys of people, `person.…`, are in every file. An objection has a word
 * that no other right has: not `Widerspruch`, `opposition` or `sprzeciw` (GDPR Art. 21).
 */

export type Words = ReadonlyMap<string, string>;

/** @param file below views/ */
export function readWords(file: string): Words {
  const lines = readFileSync(new URL(`../../views/${file}`, import.meta.url), 'utf8').trim();
  return new Map(lines.split('\n').map((line) => line.split('  ', 2) as [key: string, text: string]));
}

const MAIL_WORDS = new Map(PEOPLE_LANGUAGES.map((language) => [language, readWords(`mail.${language}.txt`)]));

type Values = Readonly<Record<string, string | number>>;

/** Formats a text, with these values in place of `{name}`. */
export const formatWords = (words: Words | undefined, key: string, values: Values = {}): string =>
  (words?.get(key) ?? key).replace(/\{(\w+)\}/g, (_place, name: string) => String(values[name] ?? ''));

export const mailText = (language: PeopleLanguage, key: string, values: Values = {}): string =>
  formatWords(MAIL_WORDS.get(language), key, values);

export const hasMailText = (key: string): boolean => MAIL_WORDS.get('en')?.has(key) === true;
