import { doc } from '../../browser/page.ts';
import type { Purpose } from '../config.ts';
import type { Words } from '../locales/en.ts';
import type { Wants } from '../plan.ts';
import { askedPurposes, choiceOf, endOf, statusOf, type Terms, whyAsked } from '../status.ts';
import { css } from './banner.css';

/** Builds the parts of the first layer and of the settings; texts are inserted as text. */

type Attributes = Readonly<Record<string, string | boolean | ((event: Event) => void)>>;

export type Child = Node | string | false | null;

/** The children without those that a condition has left out. */
export const nodes = (children: readonly Child[]): (Node | string)[] =>
  children.filter((child) => child !== false && child !== null);

/** Creates an element without markup in strings, which a policy or Trusted Types could refuse. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = doc.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    // A click that a script made is not a person's choice.
    if (typeof value === 'function')
      element.addEventListener(name, (event) => (event.isTrusted ? value(event) : undefined));
    else if (value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...nodes(children));
  return element;
}

/** Replaces each `{name}` by its value. */
function fillIn(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (_whole, name: string) => values[name] ?? '');
}

export interface Speech {
  readonly words: Words;
  readonly language: string;
}

export interface Dress {
  readonly speech: Speech;
  readonly direction: 'ltr' | 'rtl';
  readonly theme: string | null;
}

/** Gives an element of the banner its language, direction, theme, shadow root and style sheet. */
export function dressHost(host: HTMLElement, { speech, direction, theme }: Dress): ShadowRoot {
  host.dataset['nosnippet'] = '';
  host.lang = speech.language;
  host.dir = direction;
  if (theme !== null) host.dataset['theme'] = theme;
  const root = host.attachShadow({ mode: 'open' });
  // A constructed sheet is not an inline style, so `style-src 'none'` allows it (CSP 3, 8.2; CSSOM).
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  root.adoptedStyleSheets = [sheet];
  return root;
}

/** A tenant's words may be written in another direction than the banner's. */
const isolate = (text: string): HTMLElement => h('bdi', {}, text);

export const createChip = ({ words }: Speech): HTMLElement => h('span', { class: 'chip' }, words.gpc);

export const createButton = (name: string, hook: string, act: () => void): HTMLButtonElement =>
  h('button', { type: 'button', 'data-testid': hook, click: act }, name);

export const buttonRow = (...all: readonly HTMLButtonElement[]): HTMLElement =>
  h('div', { class: 'buttons' }, ...all);

function policyLink({ words }: Speech, { config }: Terms): Child {
  return config.policy.url !== '' && h('a', { href: config.policy.url, rel: 'noopener' }, words.policy);
}

function whyText({ words }: Speech, terms: Terms): Child {
  const reason = whyAsked(terms);
  if (reason === 'first') return null;
  return h(
    'p',
    {},
    { policy: words.whyPolicy, expired: words.whyExpired, purpose: words.whyPurpose }[reason],
  );
}

/** One purpose is described in full, several by their names. */
export function purposeText(purposes: readonly Purpose[], { language }: Speech): Child {
  const [only, ...rest] = purposes;
  if (!only) return null;
  if (rest.length === 0) {
    const dash = only.description !== '' && ' – ';
    return h('p', {}, h('strong', {}, isolate(only.title)), dash, isolate(only.description));
  }
  const parts = new Intl.ListFormat(language).formatToParts(purposes.map(({ title }) => title));
  const titles = parts.map(({ type, value }) => (type === 'element' ? isolate(value) : value));
  return h('p', {}, h('strong', {}, ...titles));
}

export interface LayerActions {
  readonly choose: (wanted: boolean) => void;
  readonly open: () => void;
}

/** The first layer has three answers, none louder than another. */
export function layerParts(speech: Speech, terms: Terms, actions: LayerActions): Child[] {
  const { words } = speech;
  const { title, body } = terms.config;
  return [
    h('h2', { id: 'title' }, title === '' ? words.title : isolate(title)),
    whyText(speech, terms),
    purposeText(askedPurposes(terms), speech),
    h('p', {}, body === '' ? words.body : isolate(body)),
    terms.gpc && createChip(speech),
    buttonRow(
      createButton(words.accept, 'consent-accept', () => actions.choose(true)),
      createButton(words.reject, 'consent-reject', () => actions.choose(false)),
      createButton(words.settings, 'consent-settings', actions.open),
    ),
    policyLink(speech, terms),
  ];
}

export const reopenParts = (speech: Speech, gpc: boolean): Child[] => [
  speech.words.reopen,
  gpc && createChip(speech),
];

function historyOf({ words, language }: Speech, terms: Terms, purpose: Purpose): string {
  const choice = choiceOf(terms.record, purpose.id);
  if (statusOf(terms, purpose) === 'gpc-opt-out') return words.gpcWhy;
  if (!choice) return '';
  const until = endOf(terms.config, purpose, choice);
  const format = new Intl.DateTimeFormat(language, { dateStyle: 'long' });
  const seq =
    choice.proof?.hash && new Intl.NumberFormat(language, { useGrouping: false }).format(choice.proof.seq);
  return [
    fillIn(words[choice.choice], { date: format.format(choice.at) }),
    until > terms.now && fillIn(words.until, { date: format.format(until) }),
    seq && `${fillIn(words.entry, { seq })}.`,
  ]
    .filter(Boolean)
    .join(' ');
}

/** A separate question, which "accept all" does not answer. */
function askOverGpc({ words }: Speech, { id }: Purpose, at: number, save: SheetActions['save']): Child[] {
  const allow = createButton(words.gpcAllow, 'consent-over-gpc', () => save(new Map([[id, 'over-gpc']])));
  allow.id = `over-${at}`;
  allow.setAttribute('aria-labelledby', `over-${at} title-${at}`);
  return [h('p', { class: 'small' }, words.gpcAsk), buttonRow(allow)];
}

function purposeItem(speech: Speech, terms: Terms, at: number, actions: SheetActions): Child {
  const purpose = terms.config.purposes[at];
  if (!purpose) return null;
  const status = statusOf(terms, purpose);
  const box = h('input', {
    type: 'checkbox',
    name: purpose.id,
    'aria-describedby': `about-${at} past-${at}`,
    disabled: status === 'gpc-opt-out',
  });
  // A box is ticked only for a purpose that was granted, never in advance.
  box.checked = status === 'granted';
  return h(
    'li',
    {},
    h('label', {}, box, h('span', { id: `title-${at}` }, isolate(purpose.title))),
    h('p', { id: `about-${at}` }, isolate(purpose.description)),
    h('p', { id: `past-${at}`, class: 'quiet small' }, historyOf(speech, terms, purpose)),
    ...(actions.askedOverGpc.includes(purpose.id) ? askOverGpc(speech, purpose, at, actions.save) : []),
  );
}

export interface SheetActions {
  /** Ids of purposes for which a yes over GPC is asked now, and then not again for a year. */
  readonly askedOverGpc: readonly string[];
  readonly save: (wants: Wants) => void;
  readonly close: () => void;
}

/** The settings show each purpose with its box, and when the person chose. */
export function sheetParts(speech: Speech, terms: Terms, actions: SheetActions, error: HTMLElement): Child[] {
  const { words } = speech;
  const { purposes } = terms.config;
  const list = h(
    'ul',
    { class: 'purposes' },
    ...purposes.map((_one, at) => purposeItem(speech, terms, at, actions)),
  );
  const saveAll = (isGranted: boolean) => () =>
    actions.save(new Map(purposes.map(({ id }) => [id, isGranted])));
  const saveTicked = (): void => {
    const boxes = [...list.querySelectorAll('input')];
    actions.save(new Map(boxes.map(({ name, checked }) => [name, checked])));
  };
  return [
    h(
      'div',
      { class: 'head' },
      h('h2', { id: 'settings-title', tabindex: '-1', autofocus: true }, words.reopen),
      createButton(words.close, 'consent-close', actions.close),
    ),
    terms.gpc && createChip(speech),
    list,
    error,
    buttonRow(
      createButton(words.save, 'consent-save', saveTicked),
      createButton(words.acceptAll, 'consent-accept-all', saveAll(true)),
      createButton(words.rejectAll, 'consent-reject-all', saveAll(false)),
    ),
    policyLink(speech, terms),
  ];
}
