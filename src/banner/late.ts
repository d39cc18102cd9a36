import { attempt, doc } from '../browser/page.ts';

/**
 * A gated script runs after the page has loaded: `document.write` would replace the page, and a listener for
 * DOMContentLoaded or load would never be called. While such a script runs, its text is inserted behind it,
 * and its listeners are called.
 */

/** True if the browser's timing says that the page has already fired this event. */
function hasFired(target: EventTarget, type: string): boolean {
  const [times] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  if (type === 'DOMContentLoaded') return (times?.domContentLoadedEventStart ?? 0) > 0;
  return type === 'load' && target === window && (times?.loadEventStart ?? 0) > 0;
}

/**
 * Hides a method of the page's object behind an own property.
 * @returns a function that removes the property, unless another script has replaced it since
 */
function hideMethod(target: object, name: string, value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(target, name);
  attempt(() => Object.defineProperty(target, name, { configurable: true, writable: true, value }));
  return () => {
    if (Object.getOwnPropertyDescriptor(target, name)?.value !== value) return;
    if (before) Object.defineProperty(target, name, before);
    else Reflect.deleteProperty(target, name);
  };
}

/** Several at once, because files load at the same time. */
const running = new Set<unknown>();
let stopListening: readonly (() => void)[] = [];

function callLateListeners(target: EventTarget): () => void {
  const { prototype } = EventTarget;
  type Arguments = Parameters<typeof prototype.addEventListener>;
  return hideMethod(target, 'addEventListener', (...parameters: Arguments): void => {
    const [type, listener] = parameters;
    // Listeners of the page's other scripts wait as usual.
    if (!listener || !running.has(doc.currentScript) || !hasFired(target, type))
      prototype.addEventListener.apply(target, parameters);
    else if (typeof listener === 'function') queueMicrotask(() => listener.call(target, new Event(type)));
    else queueMicrotask(() => listener.handleEvent(new Event(type)));
  });
}

/** Only for inline scripts: a browser ignores `document.write` in a script file and warns about it. */
function redirectWrites(script: HTMLScriptElement): () => void {
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
    // Scripts in the fragment run, as they do when a parser reads them.
    script.after(range.createContextualFragment(markup));
  };
}

/** @returns a function that ends the emulation, to be called once the script has run */
export function emulatePageLoad(script: HTMLScriptElement): () => void {
  if (running.size === 0) stopListening = [document, window].map(callLateListeners);
  running.add(script);
  const stopWriting = script.src === '' ? redirectWrites(script) : null;
  return () => {
    running.delete(script);
    if (running.size === 0) for (const stop of stopListening) stop();
    stopWriting?.();
  };
}
