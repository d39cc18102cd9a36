import { attempt, doc } from '../browser/page.ts';
import { type Config, readConfig } from './config.ts';
import { REFUSED } from './view/layer.ts';
import { isLifted } from './view/place.ts';

/** Finds the banner that the page's server took from gpd and wrote into the page (`view/markup.ts`). */

export interface Fragment {
  readonly host: HTMLElement;
  /** Null if it is in another language or malformed: the terms are loaded then. */
  readonly config: Config | null;
}

/** @param language primary subtag of the language that the banner speaks on this page */
export function findFragment(language: string): Fragment | null {
  const host = doc.querySelector<HTMLElement>('gpd-consent');
  if (!host) return null;
  const text = host.querySelector('script')?.textContent ?? '';
  const data = attempt(() => JSON.parse(text) as Readonly<Record<string, unknown>>) ?? {};
  const config = data['language'] === language ? readConfig(data['config']) : null;
  return { host, config };
}

/**
 * True if the person has pressed Reject before the script was there: the press opened a popover. On a page
 * that nobody has pressed yet, a script has opened it.
 */
export function isRefusedEarly(root = doc.querySelector('gpd-consent')?.shadowRoot): boolean {
  const refused = root?.getElementById(REFUSED);
  const { userActivation } = navigator as Partial<Navigator>;
  return !!refused && isLifted(refused) === true && userActivation?.hasBeenActive !== false;
}
