import { doc, guarded } from '../browser/page.ts';
import { emulatePageLoad } from './late.ts';

/** Runs `<script type="text/plain" data-purpose="…">` once every purpose that it names is granted. */

export const GATED_SCRIPT = 'script[type="text/plain"][data-purpose]';
const CLASSIC = /^(?:(?:text|application)\/(?:x-)?(?:java|ecma)script)?$/i;

const isClassic = ({ dataset }: HTMLScriptElement): boolean => CLASSIC.test(dataset['type'] ?? '');
const isInline = ({ dataset, src }: HTMLScriptElement): boolean => dataset['src'] === undefined && src === '';

/** @returns ends when its file has run, or failed; null for one that no other script of the page waits for */
function run(gated: HTMLScriptElement): Promise<void> | null {
  const script = doc.createElement('script');
  for (const { name, value } of gated.attributes) if (name !== 'type') script.setAttribute(name, value);
  const { type, src } = gated.dataset;
  if (type !== undefined) script.type = type;
  if (src !== undefined) script.src = src;
  // A browser hides the attribute from scripts and keeps the property.
  script.nonce = gated.nonce;
  // A script element made by script is async by default; the page's order must hold.
  script.async = gated.hasAttribute('async');
  script.text = gated.text;
  const isAwaited =
    !isInline(script) && isClassic(script) && !script.async && !script.defer && !script.noModule;
  const finish = emulatePageLoad(script);
  const loaded = new Promise<void>((end) => {
    for (const event of ['load', 'error']) script.addEventListener(event, () => end());
  });
  // An inline script has run when it is in the page, a module and a file later.
  if (!isInline(script)) void loaded.then(() => guarded(finish));
  gated.replaceWith(script);
  if (isInline(script)) guarded(finish);
  return isAwaited ? loaded : null;
}

export const purposesOf = ({ dataset }: HTMLElement): readonly string[] =>
  (dataset['purpose'] ?? '').split(/\s+/).filter(Boolean);

function nextOf(granted: ReadonlySet<string>, tried: ReadonlySet<Element>): HTMLScriptElement | undefined {
  return [...doc.querySelectorAll<HTMLScriptElement>(GATED_SCRIPT)].find((gated) => {
    const purposes = purposesOf(gated);
    return !tried.has(gated) && purposes.length > 0 && purposes.every((purpose) => granted.has(purpose));
  });
}

/** @param granted read again before each script: what was withdrawn in the meantime does not run */
export function createScripts(granted: () => ReadonlySet<string>): () => void {
  let isRunning = false;

  /** A browser keeps files in their order, but an inline script waits for the file before it in the parser alone. */
  async function runAll(): Promise<void> {
    const tried = new Set<Element>();
    let loading: Promise<void>[] = [];
    isRunning = true;
    try {
      for (let next = nextOf(granted(), tried); next; next = nextOf(granted(), tried)) {
        const script = next;
        if (loading.length > 0 && isInline(script) && isClassic(script)) {
          await Promise.all(loading);
          loading = [];
          continue;
        }
        tried.add(script);
        guarded(() => {
          const loaded = run(script);
          if (loaded) loading.push(loaded);
        });
      }
    } finally {
      // At once: what calls next may have added a script.
      isRunning = false;
    }
  }

  // One that is added while others are waited for is found by the pass that waits.
  return () => {
    if (!isRunning) runAll().catch(reportError);
  };
}
