import { css } from './banner.css';
import type { Speech } from './parts.ts';

export interface Dress {
  readonly speech: Speech;
  readonly direction: 'ltr' | 'rtl';
  readonly theme: string | null;
}

/** An element of the banner's own, with its language, direction and style sheet. */
export function dress(host: HTMLElement, { speech, direction, theme }: Dress): ShadowRoot {
  host.dataset['nosnippet'] = '';
  host.lang = speech.language;
  host.dir = direction;
  if (theme !== null) host.dataset['theme'] = theme;
  const root = host.attachShadow({ mode: 'open' });
  // A sheet made by script is no inline style: `style-src 'none'` lets it be (CSP 3, 8.2; CSSOM).
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  root.adoptedStyleSheets = [sheet];
  return root;
}
