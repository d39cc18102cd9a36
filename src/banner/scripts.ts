import { doc, guarded } from '../browser/page.ts';
import { GATED_SCRIPT, purposesOf } from './gated.ts';
import { emulatePageLoad } from './late.ts';

/** Runs `<script type="text/plain" data-purpose="…">` once every purpose that it names is granted. */

const CLASSIC_TYPE = /^(?:(?:text|application)\/(?:x-)?(?:java|ecma)script)?$/i;

const isClassic = ({ dataset }: HTMLScriptElement): boolean => CLASSIC_TYPE.test(dataset['type'] ?? '');
const isInline = ({ dataset, src }: HTMLScriptElement): boolean => dataset['src'] === undefined && src === '';

/**
 * @returns a promise that resolves when the file has run or failed; null if no later inline script has to
 * wait for it
 */
function runScript(gated: HTMLScriptElement): Promise<void> | null {
  const script = doc.createElement('script');
  for (const { name, value } of gated.attributes) if (name !== 'type') script.setAttribute(name, value);
  const { type, src } = gated.dataset;
  if (type !== undefined) script.type = type;
  if (src !== undefined) script.src = src;
  // Browsers hide the nonce attribute from scripts and keep the property.
  script.nonce = gated.nonce;
  // A created script element is async by default, but the page's order must be kept.
  script.async = gated.hasAttribute('async');
  script.text = gated.text;
  const isAwaited =
    !isInline(script) && isClassic(script) && !script.async && !script.defer && !script.noModule;
  const finish = emulatePageLoad(script);
  const loaded = new Promise<void>((resolve) => {
    for (const event of ['load', 'error']) script.addEventListener(event, () => resolve());
  });
  // An inline script has run once it is in the page; a module or a file runs later.
  if (!isInline(script)) void loaded.then(() => guarded(finish));
  gated.replaceWith(script);
  if (isInline(script)) guarded(finish);
  return isAwaited ? loaded : null;
}

function findNext(granted: ReadonlySet<string>, tried: ReadonlySet<Element>): HTMLScriptElement | undefined {
  return [...doc.querySelectorAll<HTMLScriptElement>(GATED_SCRIPT)].find((gated) => {
    const purposes = purposesOf(gated);
    return !tried.has(gated) && purposes.length > 0 && purposes.every((purpose) => granted.has(purpose));
  });
}

/** @param granted read again before each script, so that a withdrawal in the meantime counts */
export function createScripts(granted: () => ReadonlySet<string>): () => void {
  let isRunning = false;

  /**
   * Browsers run files in their order. An inline script waits for the files before it only in a parser, so
   * here the loop waits.
   */
  async function runAll(): Promise<void> {
    const tried = new Set<Element>();
    let loading: Promise<void>[] = [];
    isRunning = true;
    try {
      for (let next = findNext(granted(), tried); next; next = findNext(granted(), tried)) {
        const script = next;
        if (loading.length > 0 && isInline(script) && isClassic(script)) {
          await Promise.all(loading);
          loading = [];
          continue;
        }
        tried.add(script);
        guarded(() => {
          const loaded = runScript(script);
          if (loaded) loading.push(loaded);
        });
      }
    } finally {
      // Cleared synchronously: the next caller may have added a script.
      isRunning = false;
    }
  }

  // A script that is added while another pass waits is found by that pass.
  return () => {
    if (!isRunning) runAll().catch(reportError);
  };
}
