import { describe, expect, it } from 'vitest';
import { PEOPLE_LANGUAGES } from '../../../src/lib/languages.ts';
import { PEOPLE_WORDS } from '../../../src/lib/people/say.ts';
import { KID } from '../../support/constants.ts';
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
