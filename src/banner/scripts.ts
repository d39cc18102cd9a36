import { guarded } from './guarded.ts';

/** Runs `<script type="text/plain" data-purpose="…">` once every purpose that it names is granted. */

const GATED = 'script[type="text/plain"][data-purpose]';

function run(gated: HTMLScriptElement): void {
  const script = document.createElement('script');
  for (const { name, value } of gated.attributes) if (name !== 'type') script.setAttribute(name, value);
  const { type, src } = gated.dataset;
  if (type !== undefined) script.type = type;
  if (src !== undefined) script.src = src;
  // A browser hides the attribute from scripts and keeps the property.
  script.nonce = gated.nonce;
  // A script element made by script is async by default; the page's order must hold.
  script.async = gated.hasAttribute('async');
  script.text = gated.text;
  gated.replaceWith(script);
}

export function activateScripts(granted: ReadonlySet<string>): void {
  for (const gated of document.querySelectorAll<HTMLScriptElement>(GATED)) {
    const purposes = (gated.dataset['purpose'] ?? '').split(/\s+/).filter(Boolean);
    if (purposes.length > 0 && purposes.every((purpose) => granted.has(purpose))) guarded(() => run(gated));
  }
}
