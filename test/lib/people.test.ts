import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { PEOPLE_LANGUAGES, requestLanguage } from '../../src/lib/languages.ts';
import { PEOPLE_WORDS, speakerOf } from '../../src/lib/people/say.ts';
import { piecesOf } from '../../src/lib/people/words.ts';

const VIEWS = fileURLToPath(new URL('../../views', import.meta.url));
const OTHERS = PEOPLE_LANGUAGES.filter((language) => language !== 'en');

/** Words that are spelled alike in several languages, and names. */
const SAME = new Set([
  ...['forgotten.contact', 'case.contact', 'kept.bits', 'kept.signal', 'signal.model'],
  'setup.tenant',
]);

const placesOf = (text = ''): string =>
  piecesOf(text)
    .flatMap((piece) => ('place' in piece ? [piece.place] : []))
    .toSorted()
    .join();

describe('the texts of people’s pages', () => {
  it.each(OTHERS.flatMap((language) => [[language, 'PAGE'] as const, [language, 'SCRIPT'] as const]))(
    '%s %s has the keys of English and their places, and is not English',
    (language, part) => {
      const words: Readonly<Record<string, string>> = PEOPLE_WORDS[language][part];
      const english: Readonly<Record<string, string>> = PEOPLE_WORDS.en[part];
      const keys = Object.keys(english);
      expect(Object.keys(words).toSorted()).toEqual(keys.toSorted());
      expect(keys.filter((key) => placesOf(words[key]) !== placesOf(english[key]))).toEqual([]);
      expect(keys.filter((key) => words[key] === english[key] && !SAME.has(key))).toEqual([]);
      expect(keys.filter((key) => words[key]?.trim() === '')).toEqual([]);
    },
  );

  it('an unknown key throws', () => {
    expect(() => speakerOf('de').say('no.such.key' as 'case.title')).toThrow('no.such.key');
  });
});

describe('the templates of people’s pages', () => {
  const partials = ['my-data', 'case', 'setup'].flatMap((folder) =>
    readdirSync(join(VIEWS, folder)).map((name) => `${folder}/${name}`),
  );
  const entries = ['expired', 'insecure', 'passkey', 'setup', 'sign-in', 'signed-out'];
  const consoles = entries.map((name) => `console/${name}.ejs`);
  const templates = ['my-data.ejs', 'case.ejs', 'error.ejs', 'setup.ejs', ...partials, ...consoles].map(
    (name) => [name, readFileSync(join(VIEWS, name), 'utf8')] as const,
  );

  it.each(templates)('%s has no words, only keys', (_name, template) => {
    const shown = template.replace(/<%[\s\S]*?%>/g, '').replace(/<(?:[^>"]|"[^"]*")*>/g, '');
    expect(shown.match(/\p{L}{2,}/gu) ?? []).toEqual([]);
    // Attributes that people meet are texts too.
    expect(template).not.toMatch(/\b(?:alt|aria-label|placeholder|title)="[^"<]*\p{L}/u);
  });

  it('name keys that exist', () => {
    const known = new Set(Object.keys(PEOPLE_WORDS.en.PAGE));
    const usedKeys = templates.flatMap(([, text]) =>
      [...text.matchAll(/'((?:[a-z]+)\.(?:[\w-]+))'/gi)].map(([, key = '']) => key),
    );
    expect(usedKeys.filter((key) => !known.has(key) && !/\.(?:css|ejs|js)$/.test(key))).toEqual([]);
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
