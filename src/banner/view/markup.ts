import type { Config } from '../config.ts';
import { directionOf } from '../html-tag.ts';
import type { Words } from '../locales/en.ts';
import { askedPurposes, type Terms } from '../status.ts';
import { css } from './banner.css';
import { type Child, chip, createLayer, layerParts, type Make, REFUSED } from './layer.ts';
import { wordsOf } from './words.ts';

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
export function renderMarkup({ config, language, theme, nonce }: MarkupRequest): string {
  const terms = firstTerms(config);
  const speech = { words: wordsOf(config), language };
  const inside = [
    make('style', nonce === null ? {} : { nonce }, { html: css }),
    make('div', { id: REFUSED, class: 'heard', popover: 'manual' }),
    createLayer(make, ...layerParts(make, speech, terms)),
  ];
  const data = JSON.stringify({ language, config }).replaceAll('<', '\\u003c');
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

/** The rules of a shadow root for a picture, which has none: the layer is in the flow. */
const pictureCss = `${css.replace(/:host(?:\(([^)]*)\))?/g, '.host$1')}
.host{block-size:auto!important;inline-size:auto!important;position:static!important}
.host>section{box-shadow:none;margin:0 0 16px;max-block-size:none;max-inline-size:none;position:static}
.host .buttons{position:static}`;

const PICTURE_WIDTH = 640;
/** Characters of a line, and pixels of a line and of all that is no text. */
const [LINE, LINE_HEIGHT, FRAME] = [72, 24, 260];

function heightOf({ title, body, purposes }: Config, words: Words): number {
  const texts = [
    title || words.title,
    body || words.body,
    ...purposes.map((one) => one.title + one.description),
  ];
  const lines = texts.reduce((sum, text) => sum + Math.ceil(text.length / LINE) + 1, 0);
  return FRAME + lines * LINE_HEIGHT;
}

/**
 * Draws the first layer as an SVG, and below it the mark that people see under Global Privacy Control.
 * XML allows no control characters, and a picture follows no link.
 */
export function renderPicture({ config, language }: Omit<MarkupRequest, 'theme' | 'nonce'>): string {
  const speech = { words: wordsOf(config), language };
  const terms = { ...firstTerms(config), gpc: false };
  const [width, height] = [String(PICTURE_WIDTH), String(heightOf(config, speech.words))];
  const host = { class: 'host', 'data-theme': 'light', lang: language, dir: directionOf(language) };
  const drawn = make(
    'svg',
    { xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${width} ${height}` },
    make('style', {}, pictureCss),
    make(
      'foreignObject',
      { width, height },
      make(
        'div',
        { xmlns: 'http://www.w3.org/1999/xhtml', ...host },
        createLayer(make, ...layerParts(make, speech, terms)),
        createLayer(make, chip(make, speech)),
      ),
    ),
  ).html;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 section 2.2 forbids them
  return `${drawn.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '').replaceAll(' popovertarget=', ' data-target=')}\n`;
}
