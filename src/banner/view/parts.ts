import { doc } from '../../browser/page.ts';
import { type Attributes, type Child as ChildOf, chip, type Make, type Speech } from './layer.ts';

/** Makes elements and gives a host its style; texts are inserted as text. */

export type Child = ChildOf<Node>;

/** The children without those that a condition has left out. */
export const nodes = (children: readonly Child[]): (Node | string)[] =>
  children.filter((child): child is Node | string => !!child);

/** A click that a script made is not a person's choice. */
export const listen = (element: Element, name: string, act: (event: Event) => void): void =>
  element.addEventListener(name, (event) => (event.isTrusted ? act(event) : undefined));

/** Creates an element without markup in strings, which a policy or Trusted Types could refuse. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = doc.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') listen(element, name, value);
    else if (value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...nodes(children));
  return element;
}

export interface Dress {
  readonly speech: Speech;
  readonly direction: 'ltr' | 'rtl';
  readonly theme: string | null;
  /** The style sheet, as text. */
  readonly css: string;
}

/** Gives an element of the banner its language, direction, theme, shadow root and style sheet. */
export function dressHost(host: HTMLElement, { speech, direction, theme, css }: Dress): ShadowRoot {
  host.dataset['nosnippet'] = '';
  host.lang = speech.language;
  host.dir = direction;
  if (theme !== null) host.dataset['theme'] = theme;
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  // A constructed sheet is not an inline style, so `style-src 'none'` allows it (CSP 3, 8.2; CSSOM).
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  root.adoptedStyleSheets = [sheet];
  root.querySelector('style')?.remove();
  return root;
}

export const make = h as Make<HTMLElement>;

export const reopenParts = (speech: Speech, gpc: boolean): Child[] => [
  speech.words.reopen,
  gpc && chip(make, speech),
];
