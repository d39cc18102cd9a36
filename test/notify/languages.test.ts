import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PEOPLE_LANGUAGES, preferredLanguage } from '../../src/lib/languages.ts';
import { started } from '../support/started.ts';
import { startMailedRights } from './support/mailed-rights.ts';

/** Mails to people in the language that their browser asked for. */

const readLines = (language: string, name = 'mail'): Map<string, string> =>
  new Map(
    readFileSync(new URL(`../../views/${name}.${language}.txt`, import.meta.url), 'utf8')
      .trim()
      .split('\n')
      .map((line) => {
        const [key, ...rest] = line.split('  ');
        return [key ?? '', rest.join('  ')];
      }),
  );

describe('the words of mails', () => {
  const english = readLines('en');
  const ofPeople = [...english.keys()].filter((key) => key === 'subject' || key.startsWith('person.')).sort();

  it.each(PEOPLE_LANGUAGES.filter((language) => language !== 'en'))(
    '%s has each text that people read, with its values, and none in English',
    (language) => {
      const words = readLines(language);
      expect([...words.keys()].sort()).toEqual(ofPeople);
      for (const key of ofPeople) {
        const [text = '', original = ''] = [words.get(key), english.get(key)];
        expect(text.match(/\{\w+\}/g) ?? []).toEqual(original.match(/\{\w+\}/g) ?? []);
        if (key !== 'subject') expect({ key, text }).not.toEqual({ key, text: original });
      }
    },
  );

  it.each(PEOPLE_LANGUAGES.filter((language) => !['en', 'de'].includes(language)))(
    '%s has each text of the summary of an export, with its values',
    (language) => {
      const [words, german] = [readLines(language, 'dsar/summary'), readLines('de', 'dsar/summary')];
      expect([...words.keys()]).toEqual([...german.keys()]);
      for (const [key, text] of words)
        expect(text.match(/\{\w+\}/g)).toEqual((german.get(key) ?? '').match(/\{\w+\}/g));
    },
  );

  it('an objection has no word of the right to object (GDPR Art. 21) or to complain (Art. 77)', () => {
    const OTHER_RIGHTS =
      /widerspr|beschwerde|opposition|réclamation|oposici|reclamaci|opposizion|reclamo|sprzeciw|skarg/i;
    for (const language of PEOPLE_LANGUAGES)
      for (const [key, text] of readLines(language))
        expect({ language, key, isTaken: !key.includes('complaint.') && OTHER_RIGHTS.test(text) }).toEqual({
          language,
          key,
          isTaken: false,
        });
  });
});

it.each([
  [null, 'en'],
  ['', 'en'],
  ['de', 'de'],
  ['de-AT,de;q=0.9,en;q=0.8', 'de'],
  ['en;q=0.5, fr-CH;q=0.9', 'fr'],
  ['nl, pl;q=0.3', 'pl'],
  ['PL', 'pl'],
  ['es;q=0, it;q=0.1', 'it'],
  ['*', 'en'],
  ['it;q=nonsense, es;q=0.2', 'es'],
  ['xx,'.repeat(10_000), 'en'],
])('Accept-Language %j: %s', (header, language) => {
  expect(preferredLanguage(header)).toBe(language);
});

describe('a person who left an address', () => {
  const server = started(() => startMailedRights('notice.contact=privacy@acme.example'));

  /** A network may have three open cases a day. */
  const forgetNetworks = () => server.rights.sql('UPDATE contests SET case_network = NULL');

  const fileAndAsk = async (to: string, acceptLanguage: string | null) => {
    const visit = await server.rights.visit({ bot: true });
    const body = { statement: 'I am a person.', email: to };
    const headers = acceptLanguage === null ? {} : { 'accept-language': acceptLanguage };
    const filed = await server.rights.me(visit, 'contest', { body, headers });
    const { contestId } = filed.json() as { contestId: string };
    await forgetNetworks();
    await server.rights.gpd.json(['contests', 'ask', contestId, '--question', 'Which browser?']);
    return { contestId, mailed: () => server.relay.mails.filter((mail) => mail.to.includes(to)) };
  };

  it.each([
    ['de-DE,de;q=0.9', 'eine Frage zu Ihrem Einwand', /Antwort fällig bis: \d+\. \S+ \d{4} um .* UTC/],
    ['fr', 'une question sur votre contestation', /Réponse attendue au plus tard le : \d+ \S+ \d{4}/],
    ['es', 'una pregunta sobre su objeción', /Respuesta a más tardar: \d+ de \S+ de \d{4}/],
    ['it', 'una domanda sulla sua contestazione', /Risposta entro: \d+ \S+ \d{4}/],
    ['pl', 'pytanie w sprawie odwołania', /Termin odpowiedzi: \d+ \S+ \d{4}/],
    ['ja', 'a question about your objection', /Answer due by: \d+ \S+ \d{4}/],
  ])('reads %s, the site and whom to ask', async (language, title, due) => {
    const { contestId, mailed } = await fileAndAsk(`${language.slice(0, 2)}@person.example`, language);
    await expect.poll(() => mailed().length).toBe(1);
    const [{ subject, text } = { subject: '', text: '' }] = mailed();
    expect(subject.replaceAll('\u00a0', ' ').replace(' :', ':')).toBe(`shop.example: ${title}`);
    expect(text).toMatch(due);
    expect(text).not.toMatch(/\{\w+\}|person\.(?:intro|contest|read)/);
    for (const part of [contestId, 'privacy@acme.example', `${server.rights.gpd.url}/case`])
      expect(text).toContain(part);
  });

  it('has that language in what is held about them, and a person without an address has none', async () => {
    const visit = await server.rights.visit({ bot: true });
    const headers = { 'accept-language': 'de' };
    const readLanguages = async () => {
      const { contests } = (await server.rights.me(visit, 'export')).json() as {
        contests: { language: unknown }[];
      };
      return contests.map(({ language }) => language);
    };
    await server.rights.me(visit, 'contest', { body: { statement: 'I am a person.' }, headers });
    await forgetNetworks();
    expect(await readLanguages()).toEqual([null]);
    const other = await server.rights.visit({ bot: true });
    await server.rights.me(other, 'contest', {
      body: { statement: 'I am one.', email: 'a@b.example' },
      headers,
    });
    const exported = (await server.rights.me(other, 'export')).json() as {
      contests: { language: unknown }[];
    };
    expect(exported.contests.map(({ language }) => language)).toContain('de');
  });
});
