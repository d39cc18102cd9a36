import { attempt, doc } from '../browser/page.ts';
import { logProblem } from './html-tag.ts';
import type { ImportExtras } from './load-extras.ts';
import { start } from './start.ts';
import type { GpdConsent } from './types.ts';

/** Reads the attributes of the snippet's tag and puts `window.gpd.consent` in place. */

function startFor(script: HTMLScriptElement, importExtras: ImportExtras): GpdConsent {
  const attribute = (name: string): string | null => script.getAttribute(`data-${name}`);
  // Tag managers remove every data- attribute.
  const key = attribute('key') || attempt(() => new URL(script.src).searchParams.get('key')) || '';
  const server = attribute('server') ?? script.src.replace(/\/v1\/embed\b.*$/, '');
  return start(importExtras, key, server, attribute);
}

/** @param importExtras gets the second file for a script with this address */
export function startSnippet(importExtras: (scriptUrl: string) => ReturnType<ImportExtras>): void {
  // The agent shares the name `gpd`: each adds itself and keeps the other. A second snippet changes nothing.
  const page = window as { gpd?: { consent?: GpdConsent } };
  // A form with the id `gpd` would appear here as well; only an own property is an API.
  page.gpd = (Object.hasOwn(page, 'gpd') && page.gpd) || {};
  const { currentScript } = doc;
  if (currentScript instanceof HTMLScriptElement)
    page.gpd.consent ??= startFor(currentScript, () => importExtras(currentScript.src));
  else logProblem('its script was loaded as a module. Leave type="module" out');
}
