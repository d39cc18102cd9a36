import type { Config } from '../config.ts';
import { directionOf } from '../html-tag.ts';
import type { Words } from '../locales/en.ts';
import { askedPurposes, type Terms } from '../status.ts';
import { css } from './banner.css';
import { type Child, createLayer, layerParts, type Make, REFUSED } from './layer.ts';

/**
 * The banner as markup: gpd's server hands it to the page's server, whose page shows it before any script
 * runs. The build makes a module of it.
 */

/** Text that is escaped already. */
interface Markup {
  readonly html: string;
}

const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

const htmlOf = (child: Child<Markup>): string =>
  typeof child === 'string' ? escaped(child) : child ? child.html : '';

const make: Make<Markup> = (tag, attributes, ...children) => {
  const pairs = Object.entries(attributes).flatMap(([name, value]) => {
    if (value === false || typeof value === 'function') return [];
    return [` ${name}="${value === true ? '' : escaped(value)}"`];
  });
  return { html: `<${tag}${pairs.join('')}>${children.map(htmlOf).join('')}</${tag}>` };
};

/** The terms of a visitor who was never asked. */
const firstTerms = (config: Config): Terms => ({
  ...{ config, record: null, gpc: config.gpc, now: 0, askedAt: {} },
});

export interface MarkupRequest {
  readonly config: Config;
  readonly words: Words;
  /** The primary subtag of the words. */
  readonly language: string;
  readonly theme: string | null;
  /** The page's nonce for its styles; null if its policy needs none. */
  readonly nonce: string | null;
}

/**
 * A closed popover is not displayed, and only the style sheet of its shadow root shows it nevertheless. So
 * nothing shows in a browser without declarative shadow roots, or under a policy that refuses the style.
 */
export function renderMarkup({ config, words, language, theme, nonce }: MarkupRequest): string {
  const terms = firstTerms(config);
  const speech = { words, language };
  const inside = [
    make('style', nonce === null ? {} : { nonce }, { html: css }),
    make('div', { id: REFUSED, class: 'heard', popover: 'manual' }),
    createLayer(make, ...layerParts(make, speech, terms)),
  ];
  const data = JSON.stringify({ language, config, words }).replaceAll('<', '\\u003c');
  const host = {
    ...{ 'data-nosnippet': true, lang: language, dir: directionOf(language), popover: 'manual' },
    ...(theme !== null && { 'data-theme': theme }),
  };
  const isAsking = askedPurposes(terms).length > 0;
  return make(
    'gpd-consent',
    host,
    isAsking && make('template', { shadowrootmode: 'open' }, ...inside),
    make('script', { type: 'application/json' }, { html: data }),
  ).html;
}
