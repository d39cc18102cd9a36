import type { Config, Purpose } from '../config.ts';
import type { Words } from '../locales/en.ts';
import { AGENT_PURPOSE, askedPurposes, type Terms, whyAsked } from '../status.ts';

/**
 * Draws the first layer. The browser makes elements of it, and the server markup for the page's own server:
 * `make` is the only difference.
 */

export type Attributes = Readonly<Record<string, string | boolean | ((event: Event) => void)>>;

export type Child<Part> = Part | string | false | null;

export type Make<Part> = (tag: string, attributes: Attributes, ...children: readonly Child<Part>[]) => Part;

export interface Speech {
  readonly words: Words;
  readonly language: string;
}

/** The id of the popover that Reject opens while no script is there to hear the press. */
export const REFUSED = 'refused';

/** A tenant's words may be written in another direction than the banner's. */
export const isolate = <Part>(make: Make<Part>, text: string): Part => make('bdi', {}, text);

export const chip = <Part>(make: Make<Part>, { words }: Speech): Part =>
  make('span', { class: 'chip' }, words.gpc);

export const button = <Part>(
  make: Make<Part>,
  name: string,
  hook: string,
  attributes: Attributes = {},
): Part => make('button', { type: 'button', 'data-testid': hook, ...attributes }, name);

export const buttonRow = <Part>(make: Make<Part>, ...all: readonly Child<Part>[]): Part =>
  make('div', { class: 'buttons' }, ...all);

/** The links that a tenant has set; false without any. */
export function foot<Part>(make: Make<Part>, { words }: Speech, { config }: Terms): Child<Part> {
  const addresses = [
    [config.policy.url, words.policy],
    [config.imprintUrl, words.imprint],
  ] as const;
  const links = addresses.map(([href, name]) => href !== '' && make('a', { href, rel: 'noopener' }, name));
  return links.some(Boolean) && make('span', { class: 'foot' }, ...links);
}

/** Asks under the name of the site. The agent's purpose alone is asked for by what it does. */
function question<Part>(make: Make<Part>, { words }: Speech, { siteName }: Config, ids: readonly string[]) {
  const text = ids.join() === AGENT_PURPOSE ? words.titleDevice : words.title;
  // One text, because the page's server has written it as one.
  if (siteName === '') return [text.replace('{site}', words.site)];
  const [before = '', after = ''] = text.split('{site}');
  return [before, isolate(make, siteName), after];
}

function whyText<Part>(make: Make<Part>, { words }: Speech, terms: Terms): Child<Part> {
  const reason = whyAsked(terms);
  const texts = { policy: words.whyPolicy, expired: words.whyExpired, purpose: words.whyPurpose };
  return reason === 'first' ? null : make('p', {}, texts[reason]);
}

/** One purpose is described in full, several by their names. */
export function purposeText<Part>(
  make: Make<Part>,
  purposes: readonly Purpose[],
  { language }: Speech,
): Child<Part> {
  const [only, ...rest] = purposes;
  if (!only) return null;
  if (rest.length === 0) {
    const dash = only.description !== '' && ' – ';
    const title = make('strong', {}, isolate(make, only.title));
    return make('p', {}, title, dash, isolate(make, only.description));
  }
  const parts = new Intl.ListFormat(language).formatToParts(purposes.map(({ title }) => title));
  const titles = parts.map(({ type, value }) => (type === 'element' ? isolate(make, value) : value));
  return make('p', {}, make('strong', {}, ...titles));
}

/**
 * The first layer has two answers, neither louder than the other, and below them the ways to know more. The
 * view listens to the buttons; until it is there, Reject opens the popover of the markup.
 */
export function layerParts<Part>(make: Make<Part>, speech: Speech, terms: Terms): Child<Part>[] {
  const { words } = speech;
  const { title, body } = terms.config;
  const purposes = askedPurposes(terms);
  const ids = purposes.map(({ id }) => id);
  const titleParts = title === '' ? question(make, speech, terms.config, ids) : [isolate(make, title)];
  return [
    make('h2', { id: 'title' }, ...titleParts),
    whyText(make, speech, terms),
    purposeText(make, purposes, speech),
    make('p', {}, body === '' ? words.body : isolate(make, body)),
    terms.gpc && chip(make, speech),
    buttonRow(
      make,
      button(make, words.accept, 'consent-accept'),
      button(make, words.reject, 'consent-reject', { popovertarget: REFUSED, popovertargetaction: 'show' }),
      button(make, words.settings, 'consent-settings'),
      foot(make, speech, terms),
    ),
  ];
}

export const createLayer = <Part>(make: Make<Part>, ...children: readonly Child<Part>[]): Part =>
  make(
    'section',
    { class: 'layer', 'aria-labelledby': 'title', 'data-testid': 'consent-banner', 'data-nosnippet': true },
    ...children,
  );
