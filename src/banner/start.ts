import { browserGpc, doc, guarded, untilSeen } from '../browser/page.ts';
import { type Controller, createController } from './controller.ts';
import { createCookieStore } from './cookie.ts';
import { findFragment, isRefusedEarly } from './fragment.ts';
import { createGates } from './gates.ts';
import { directionOf, explainProblem, keyProblem, pickLanguage } from './html-tag.ts';
import { createLoader, type ImportExtras } from './load-extras.ts';
import { createStore } from './record.ts';
import { createServerClient } from './server.ts';
import type { ConsentEvents, ConsentSnapshot, GpdConsent, LinkResult } from './types.ts';
import { css } from './view/banner.css';
import { CHOICES_LINK, createView, type View } from './view/view.ts';
import { wordsOf } from './view/words.ts';

/** Starts the banner: loads the tenant's terms and asks what is open. */

/** Reads an attribute of the snippet (`theme` for `data-theme`), or the page's option of that name. */
export type ReadAttribute = (name: string) => string | null;

/** An object for each call of `on`, so that two components may share a function. */
interface Listener {
  readonly listen: (detail: never) => void;
}
type Listeners = Readonly<Record<keyof ConsentEvents, Set<Listener>>>;

function callListener(listeners: ReadonlySet<Listener>, listener: Listener, detail: never): void {
  if (listeners.has(listener)) guarded(() => listener.listen(detail));
}

const untilParsed = (): Promise<void> =>
  new Promise((done) => {
    if (doc.readyState !== 'loading') done();
    else doc.addEventListener('DOMContentLoaded', () => done());
  });

/** Google's tag reads `arguments` objects and skips arrays. */
function pushToDataLayer(
  ..._command: ['consent', 'default' | 'update', Record<string, string | number>]
): void {
  const page = window as { dataLayer?: unknown[] };
  page.dataLayer = page.dataLayer ?? [];
  // biome-ignore lint/complexity/noArguments: Google's format
  page.dataLayer.push(arguments);
}

const WAIT_MS = 500;

/**
 * Google Consent Mode v2, for a page with `data-google-consent="analytics_storage=analytics …"`. It sends
 * `denied` at once, before any choice.
 * @returns a function that sends the granted purposes; null for a page without the attribute
 */
function createGoogle(attribute: string | null): ((granted: ReadonlySet<string>) => void) | null {
  const pairs = (attribute ?? '').split(/[\s,;]+/).flatMap((pair): [string, string][] => {
    const [signal, purpose] = pair.split('=');
    return signal && purpose ? [[signal, purpose]] : [];
  });
  if (pairs.length === 0) return null;
  const statesOf = (granted: ReadonlySet<string>): Record<string, string> =>
    Object.fromEntries(
      pairs.map(([signal, purpose]) => [signal, granted.has(purpose) ? 'granted' : 'denied']),
    );
  guarded(() => pushToDataLayer('consent', 'default', { ...statesOf(new Set()), wait_for_update: WAIT_MS }));
  return (granted) => pushToDataLayer('consent', 'update', statesOf(granted));
}

function readOptions(importExtras: ImportExtras, key: string, server: string, attribute: ReadAttribute) {
  const loadExtras = createLoader(importExtras);
  // A principal's id is a hash, and browsers compute hashes in secure contexts only.
  const missing = keyProblem(key) ?? (globalThis.crypto?.subtle ? null : 'insecure-context');
  return {
    missing: missing ?? '',
    server: missing === null ? createServerClient(server.replace(/\/+$/, ''), key) : null,
    language: pickLanguage([attribute('lang'), doc.documentElement.lang, ...navigator.languages]),
    google: createGoogle(attribute('google-consent')),
    theme: attribute('theme'),
    store:
      attribute('store') === 'cookie' ? createCookieStore(createStore(), attribute('domain')) : createStore(),
    loadExtras,
  };
}

/**
 * Each event reaches the page's listeners first, then the document.
 * @param current the state once it is known: a late listener of `ready` gets it
 */
function createEvents(current: () => ConsentSnapshot | null) {
  const listeners: Listeners = {
    ready: new Set(),
    change: new Set(),
    recorded: new Set(),
    open: new Set(),
    close: new Set(),
  };
  return {
    on: <Name extends keyof ConsentEvents>(name: Name, listen: (detail: ConsentEvents[Name]) => void) => {
      const listener: Listener = { listen };
      listeners[name].add(listener);
      if (name === 'ready' && current())
        queueMicrotask(() => callListener(listeners.ready, listener, current() as never));
      return () => void listeners[name].delete(listener);
    },
    emit: <Name extends keyof ConsentEvents>(name: Name, detail: ConsentEvents[Name]): void => {
      // A copy: a listener that subscribes again while it is called would be called for ever.
      for (const listener of [...listeners[name]]) callListener(listeners[name], listener, detail as never);
      doc.dispatchEvent(new CustomEvent(`gpd-consent-${name}`, { detail }));
    },
  };
}

/** The part of the page's API that needs only the controller. */
function createApi(
  firstState: Promise<ConsentSnapshot>,
  controller: Controller,
  { server, missing }: ReturnType<typeof readOptions>,
) {
  // The agent dispatches this event when the verdict says that a machine gave the consent.
  doc.addEventListener('gpd-ask-again', () => void controller.askAgain());
  return {
    receipt: () => firstState.then(controller.receipt),
    state: controller.snapshot,
    link: (session: string, token: string): Promise<LinkResult> =>
      server?.link(session, token) ?? Promise.resolve({ linked: false, status: 0, error: missing }),
    join: (session: string) => firstState.then(() => controller.join(session)),
    async withdraw(purposes?: string | readonly string[]) {
      await firstState;
      return controller.withdraw(typeof purposes === 'string' ? [purposes] : (purposes ?? null));
    },
  };
}

/** The controller reaches the browser through these alone, so tests run it without one. */
const browserDeps = ({ server, missing, language, store }: ReturnType<typeof readOptions>) => ({
  server,
  missing,
  store,
  language: language.code,
  gpc: browserGpc,
  now: Date.now,
  isVisible: () => doc.visibilityState === 'visible',
  isRefusedEarly,
});

/** @returns null if there is nothing to show */
function openView(
  { language, theme, loadExtras }: ReturnType<typeof readOptions>,
  controller: Controller,
  onToggle: (name: 'open' | 'close') => void,
): View | null {
  // If the script ran first, the parser has come to it meanwhile.
  const host = findFragment(language.code)?.host ?? null;
  const terms = controller.terms();
  if (!terms) {
    // Nobody would hear its buttons.
    host?.remove();
    return null;
  }
  const speech = { words: wordsOf(terms.config), language: language.tag };
  const dress = { speech, direction: directionOf(language.code), theme, css };
  return createView({ ...controller, ...dress, loadExtras, onToggle, host });
}

/** A fault of the banner must not break the page: nothing is granted then. */
function explainState(loading: Promise<void>, becomeReady: () => ConsentSnapshot): Promise<ConsentSnapshot> {
  const firstState = loading.catch(reportError).then(becomeReady);
  void firstState.then(({ problem }) => problem !== null && explainProblem(problem));
  return firstState;
}

/** Without terms a link leads where the page has pointed it. */
function openByLinks(open: () => void, hasTerms: () => boolean): void {
  doc.addEventListener('click', (event) => {
    if (!(event.target as Element).closest?.(CHOICES_LINK)) return;
    if (hasTerms()) event.preventDefault();
    open();
  });
}

export function start(...options: Parameters<typeof readOptions>): GpdConsent {
  const tag = readOptions(...options);
  const { on, emit } = createEvents(() => (isReady ? controller.snapshot() : null));
  let view: View | null = null;
  let isReady = false;

  function onChange(state: ConsentSnapshot): void {
    if (state.phase === 'loading') return;
    guarded(() => view?.render());
    applyChoices();
    guarded(() => tag.google?.(new Set(state.granted)));
    if (!isReady) return;
    ready = Promise.resolve(state);
    emit('change', { ...state, recorded: controller.isRecorded() });
  }

  const controller = createController({
    ...browserDeps(tag),
    onChange,
    onRecorded: (choices) => emit('recorded', choices),
    onChecked: () => applyChoices(),
  });
  const applyChoices = createGates(tag.loadExtras, {
    ...controller,
    wait: () => view?.wait ?? null,
    onPage: () => view?.updateReopen(),
  });

  async function load(): Promise<void> {
    await untilSeen();
    const inPage = findFragment(tag.language.code)?.config;
    await Promise.all([controller.load(inPage), untilParsed()]);
    if (view) return;
    view = openView(tag, controller, (name) => emit(name, controller.snapshot()));
    if (!view) return;
    view.begin();
    applyChoices();
    // The page's server may have kept its terms for a while, and the clock is gpd's.
    if (inPage) void controller.load();
  }

  const firstState = explainState(load(), () => {
    isReady = true;
    emit('ready', controller.snapshot());
    return controller.snapshot();
  });
  let ready = firstState;
  const open = (): void => void firstState.then(() => (view ? undefined : load())).then(() => view?.open());
  openByLinks(open, () => view !== null);
  return Object.freeze({
    ...createApi(firstState, controller, tag),
    // A new promise comes only after a change: renderers compare promises by identity.
    get ready() {
      return ready;
    },
    on,
    open,
    activate: applyChoices,
  } satisfies GpdConsent);
}
