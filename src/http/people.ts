import type { Response } from 'express';
import { PEOPLE_LANGUAGES, requestLanguage } from '../lib/languages.ts';
import { LANGUAGE_NAMES, type Speaker, speakerOf } from '../lib/people/say.ts';

/** The language of a page for people: `?lang=`, then `Accept-Language`; no cookie. */

interface LanguageLink {
  readonly href: string;
  readonly text: string;
  readonly lang: string;
  readonly isCurrent: boolean;
}

/** Every template of people's pages gets this. */
export interface PeopleLocals extends Speaker {
  readonly languages: readonly LanguageLink[];
  /** `?lang=` for links and forms, if the person chose by it; otherwise nothing. */
  readonly langQuery: string;
}

/**
 * Says in the headers which language the page has, and gives its texts. The links of the switch keep the
 * query; the page's script adds the fragment.
 * @param query of the links; left out: that of the request
 */
export function speakTo(
  response: Response,
  query: Readonly<Record<string, unknown>> = response.req.query,
): PeopleLocals {
  const { headers } = response.req;
  const chosen = response.req.query['lang'];
  const lang = requestLanguage(chosen, headers['accept-language'] ?? null);
  response.set('content-language', lang).vary('Accept-Language');
  const given = Object.entries(query).filter(
    (field): field is [string, string] => typeof field[1] === 'string' && field[0] !== 'lang',
  );
  const languages = PEOPLE_LANGUAGES.map((one) => ({
    href: `?${new URLSearchParams([...given, ['lang', one]]).toString()}`,
    text: LANGUAGE_NAMES[one],
    lang: one,
    isCurrent: one === lang,
  }));
  return { ...speakerOf(lang), languages, langQuery: chosen === lang ? `?lang=${lang}` : '' };
}
