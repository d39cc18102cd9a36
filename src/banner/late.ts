import { attempt, doc } from '../browser/page.ts';

/**
 * A gated script runs after the page has loaded, so `document.write` would replace the page and a listener for DOMContentLoaded or load
 * would wait for ever. While such a script runs, it writes behind itself, and its listener is called.
 */

/** Events of a load that are over, by the times that the browser keeps of them. */
function isOver(target: EventTarget, type: string): boolean {
  const [times] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  if (type === 'DOMContentLoaded') return (times?.domContentLoadedEventStart ?? 0) > 0;
  return type === 'load' && target === window && (times?.loadEventStart ?? 0) > 0;
}

/** An own property of the page's object hides the method. @returns ends it, unless another script has put its own there since */
function hideMethod(target: object, name: string, value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(target, name);
  attempt(() => Object.defineProperty(target, name, { configurable: true, writable: true, value }));
  return () => {
    if (Object.getOwnPropertyDescriptor(target, name)?.value !== value) return;
    if (before) Object.defineProperty(target, name, before);
    else Reflect.deleteProperty(target, name);
  };
}

/** Files load side by side. */
const running = new Set<unknown>();
let stopListening: readonly (() => void)[] = [];

function callLateListeners(target: EventTarget): () => void {
  const { prototype } = EventTarget;
  type Parts = Parameters<typeof prototype.addEventListener>;
  return hideMethod(target, 'addEventListener', (...parameters: Parts): void => {
    const [type, listener] = parameters;
    // A listener of another script of the page waits as it always did.
    if (!listener || !running.has(doc.currentScript) || !isOver(target, type))
      prototype.addEventListener.apply(target, parameters);
    else if (typeof listener === 'function') queueMicrotask(() => listener.call(target, new Event(type)));
    else queueMicrotask(() => listener.handleEvent(new Event(type)));
  });
}

/** A browser ignores what a file writes, and says so. */
function writeBehind(script: HTMLScriptElement): () => void {
  let markup = '';
  const write = (...texts: unknown[]): void => {
    markup += texts.join('');
  };
  const ends = [
    hideMethod(document, 'write', write),
    hideMethod(document, 'writeln', (...texts: unknown[]) => write(...texts, '\n')),
  ];
  return () => {
    for (const end of ends) end();
    if (markup === '') return;
    const range = doc.createRange();
    range.selectNode(script);
    // Scripts in it run, as they do where a parser reads them.
    script.after(range.createContextualFragment(markup));
  };
}

/** @returns ends it, once the script has run */
export function emulatePageLoad(script: HTMLScriptElement): () => void {
  if (running.size === 0) stopListening = [document, window].map(callLateListeners);
  running.add(script);
  const stopWriting = script.src === '' ? writeBehind(script) : null;
  return () => {
    running.delete(script);
    if (running.size === 0) for (const stop of stopListening) stop();
    stopWriting?.();
  };
}
