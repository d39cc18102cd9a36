import type { Purpose } from '../config.ts';
import type { Words } from '../locales/en.ts';
import { askedPurposes, type Terms, whyAsked } from '../status.ts';

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

export const buttonRow = <Part>(make: Make<Part>, ...all: readonly Part[]): Part =>
  make('div', { class: 'buttons' }, ...all);

export const policyLink = <Part>(make: Make<Part>, { words }: Speech, { config }: Terms): Child<Part> =>
  config.policy.url !== '' && make('a', { href: config.policy.url, rel: 'noopener' }, words.policy);

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
 * The first layer has three answers, none louder than another. The view listens to the buttons; until it is
 * there, Reject opens the popover of the markup.
 */
export function layerParts<Part>(make: Make<Part>, speech: Speech, terms: Terms): Child<Part>[] {
  const { words } = speech;
  const { title, body } = terms.config;
  return [
    make('h2', { id: 'title' }, title === '' ? words.title : isolate(make, title)),
    whyText(make, speech, terms),
    purposeText(make, askedPurposes(terms), speech),
    make('p', {}, body === '' ? words.body : isolate(make, body)),
    terms.gpc && chip(make, speech),
    buttonRow(
      make,
      button(make, words.accept, 'consent-accept'),
      button(make, words.reject, 'consent-reject', { popovertarget: REFUSED, popovertargetaction: 'show' }),
      button(make, words.settings, 'consent-settings'),
    ),
    policyLink(make, speech, terms),
  ];
}

export const createLayer = <Part>(make: Make<Part>, ...children: readonly Child<Part>[]): Part =>
  make(
    'section',
    { class: 'layer', 'aria-labelledby': 'title', 'data-testid': 'consent-banner', 'data-nosnippet': true },
    ...children,
  );
