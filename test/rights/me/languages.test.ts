import { describe, expect, it } from 'vitest';
import { VERDICT_WORDS } from '../../../src/ingest/verdict/verdict-words.ts';
import { PEOPLE_LANGUAGES } from '../../../src/lib/languages.ts';
import { PEOPLE_WORDS } from '../../../src/lib/people/say.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { ask } from '../../support/http.ts';
import { started } from '../../support/started.ts';
import { startRights } from '../support/rights.ts';

/** Pages of people in the language that was asked for. */

const rights = started(() => startRights());
const get = (path: string, language?: string) =>
  ask(rights.gpd.url, path, {
    headers: { accept: 'text/html', ...(language !== undefined && { 'accept-language': language }) },
  });

describe.each([
  ['/case', 'case.title'],
  [`/my-data?kid=${KID}`, 'held.title'],
] as const)('%s', (path, title) => {
  it.each(PEOPLE_LANGUAGES)('in %s by Accept-Language, and by the switch against it', async (language) => {
    const other = language === 'en' ? 'de' : 'en';
    const switched = `${path}${path.includes('?') ? '&' : '?'}lang=${language}`;
    for (const reply of [await get(path, `${language}-XX, *;q=0.1`), await get(switched, other)]) {
      expect(reply.status).toBe(200);
      expect(reply.headers['content-language']).toBe(language);
      expect(reply.headers['vary']).toContain('Accept-Language');
      expect(reply.text).toContain(`<html lang="${language}"`);
      expect(reply.text).toContain(`>${PEOPLE_WORDS[language].PAGE[title]}</h1>`);
    }
  });

  it('an unknown language is English, and the links of the switch keep the query', async () => {
    const { text, headers } = await get(`${path}${path.includes('?') ? '&' : '?'}lang=%22%3E`, 'ar');
    expect(headers['content-language']).toBe('en');
    const links = [...text.matchAll(/<a href="([^"]*)" lang="(\w+)" hreflang/g)];
    expect(links.map(([, , lang]) => lang)).toEqual(PEOPLE_LANGUAGES);
    const lastLink = path.includes('kid') ? `?kid=${KID}&amp;lang=pl` : '?lang=pl';
    expect(links.at(-1)?.[1]).toBe(lastLink);
  });
});

it.each(PEOPLE_LANGUAGES)(
  'the reasons of a decision are in %s on the page, and in English in the API',
  async (language) => {
    const visit = await rights.visit({ bot: true });
    const headers = { 'accept-language': language };
    const reply = await ask(rights.gpd.url, '/my-data', {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'text/html',
        origin: ORIGIN,
        cookie: `gp_session=${visit.session}`,
        ...headers,
      },
      body: new URLSearchParams({ token: visit.token }).toString(),
    });
    const { rules } = VERDICT_WORDS[language];
    expect(reply.text).toContain(rules.A1.replaceAll("'", '&#39;'));
    const exported = (await rights.me(visit, 'export', { headers })).json() as {
      decisions: { rules: { id: string; text: string }[]; whatWouldHaveChanged: { text: string } }[];
    };
    const [decision] = exported.decisions;
    expect(decision?.rules).toContainEqual(
      expect.objectContaining({ id: 'A1', text: VERDICT_WORDS.en.rules.A1 }),
    );
    expect(decision?.whatWouldHaveChanged.text).toMatch(/^(?:Without|No) /);
  },
);
