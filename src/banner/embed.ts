import { attempt, browserGpc, doc, guarded, untilSeen } from '../browser/page.ts';
import { type Controller, createController } from './controller.ts';
import { directionOf, keyProblem, pickLanguage, say, sayProblem } from './html-tag.ts';
import { words as english, type Words } from './locales/en.ts';
import { createMedia, GATED_MEDIA } from './media.ts';
import { createStore } from './record.ts';
import { createScripts, GATED_SCRIPT } from './scripts.ts';
import { createServerClient } from './server.ts';
import type { ConsentEvents, ConsentSnapshot, GpdConsent, LinkResult } from './types.ts';
import { createView, type View } from './view/view.ts';

/** The snippet: reads its own attributes, puts the page's API in place, asks the server, shows what has to be asked. */

/** Names the files that this script was built with; the build hands it in. */
declare const VERSION: string;

type Listener = (detail: never) => void;
type Listeners = Readonly<Record<keyof ConsentEvents, Set<Listener>>>;

const loaded = (): Promise<void> =>
  new Promise((done) => {
    if (doc.readyState !== 'loading') done();
    else doc.addEventListener('DOMContentLoaded', () => done());
  });

/** Words missing in a file of another version stay English. */
function mergeWords(found: unknown): Words {
  const merged: Record<string, string> = { ...english };
  for (const [name, text] of Object.entries(found ?? {}))
    if (Object.hasOwn(english, name) && typeof text === 'string') merged[name] = text;
  return merged as unknown as Words;
}

/** Google Consent Mode v2, for a page that asks for it: `data-google-consent="analytics_storage=analytics …"`. */

/** Google's tag reads `arguments` objects and passes over arrays. */
function push(..._command: ['consent', 'default' | 'update', Record<string, string | number>]): void {
  const page = window as { dataLayer?: unknown[] };
  page.dataLayer = page.dataLayer ?? [];
  // biome-ignore lint/complexity/noArguments: it is the format
  page.dataLayer.push(arguments);
}

const WAIT_MS = 500;

/** Says `denied` at once, whatever happens afterwards. @returns what says the rest; null when nothing is asked for */
export function createGoogle(attribute: string | null): ((granted: ReadonlySet<string>) => void) | null {
  const pairs = (attribute ?? '').split(/[\s,;]+/).flatMap((pair): [string, string][] => {
    const [signal, purpose] = pair.split('=');
    return signal && purpose ? [[signal, purpose]] : [];
  });
  if (pairs.length === 0) return null;
  const states = (granted: ReadonlySet<string>): Record<string, string> =>
    Object.fromEntries(
      pairs.map(([signal, purpose]) => [signal, granted.has(purpose) ? 'granted' : 'denied']),
    );
  guarded(() => push('consent', 'default', { ...states(new Set()), wait_for_update: WAIT_MS }));
  return (granted) => push('consent', 'update', states(granted));
}

/** Reads the attributes of the snippet's tag. */
function readTag(script: HTMLScriptElement) {
  const attribute = (name: string): string | null => script.getAttribute(`data-${name}`);
  // Tag managers take every data- attribute off.
  const key = attribute('key') || attempt(() => new URL(script.src).searchParams.get('key')) || '';
  const base = (attribute('server') ?? script.src.replace(/\/v1\/embed\b.*$/, '')).replace(/\/+$/, '');
  // A principal's id is a hash, and browsers hash in secure contexts only.
  const missing = keyProblem(key) ?? (globalThis.crypto?.subtle ? null : 'insecure-context');
  return {
    missing: missing ?? '',
    server: missing === null ? createServerClient(base, key) : null,
    language: pickLanguage([attribute('lang'), doc.documentElement.lang, ...navigator.languages]),
    google: createGoogle(attribute('google-consent')),
    theme: attribute('theme'),
  };
}

/** Asks the server for everything that the view needs. */
async function loadWords({ server, language }: ReturnType<typeof readTag>, controller: Controller) {
  const file = `/v1/embed/${VERSION}/${language.code}.json`;
  const english = language.code === 'en' || !server;
  const [found] = await Promise.all([english ? null : server.words(file), controller.load(), loaded()]);
  return mergeWords(found);
}

/** Tells the page: its listeners first, then the document. */
function createEvents() {
  const listeners: Listeners = {
    ready: new Set(),
    change: new Set(),
    recorded: new Set(),
    open: new Set(),
    close: new Set(),
  };
  return {
    on: <Name extends keyof ConsentEvents>(name: Name, listen: (detail: ConsentEvents[Name]) => void) => {
      listeners[name].add(listen);
      return () => listeners[name].delete(listen);
    },
    emit: <Name extends keyof ConsentEvents>(name: Name, detail: ConsentEvents[Name]): void => {
      for (const listen of listeners[name]) guarded(() => listen(detail as never));
      doc.dispatchEvent(new CustomEvent(`gpd-consent-${name}`, { detail }));
    },
  };
}

/** The part of the page's API that needs only the controller. */
function apiOf(
  first: Promise<ConsentSnapshot>,
  controller: Controller,
  { server, missing }: ReturnType<typeof readTag>,
) {
  // The agent dispatches it when its answer says that a machine gave the consent.
  doc.addEventListener('gpd-ask-again', () => void controller.askAgain());
  return {
    receipt: () => first.then(controller.receipt),
    state: controller.snapshot,
    link: (session: string, token: string): Promise<LinkResult> =>
      server?.link(session, token) ?? Promise.resolve({ linked: false, status: 0, error: missing }),
    async withdraw(purposes?: string | readonly string[]) {
      await first;
      return controller.withdraw(typeof purposes === 'string' ? [purposes] : (purposes ?? null));
    },
  };
}

/** The controller reads the page and its browser through these alone, so tests run it without either. */
const pageOf = ({ server, missing, language }: ReturnType<typeof readTag>) => ({
  server,
  missing,
  store: createStore(),
  language: language.code,
  gpc: browserGpc,
  now: Date.now,
});

/** @returns runs and loads what may start now, and empties what may not stay */
function createActs({
  controller,
  view,
}: {
  controller(this: void): Controller;
  view(this: void): View | null;
}): () => void {
  const startable = () => controller().startable();
  const scripts = createScripts(startable);
  const media = createMedia({
    startable,
    granted: () => new Set(controller().snapshot().granted),
    fill: (placeholder, purposes) => view()?.fillWait(placeholder, purposes) ?? false,
  });
  return () => {
    media();
    scripts();
  };
}

const GATED = `${GATED_SCRIPT},${GATED_MEDIA}`;

const holdsGated = (node: Node): boolean =>
  node instanceof Element && (node.matches(GATED) || node.querySelector(GATED) !== null);

/** @param act called when something that waits for a purpose came or went */
export function watchPage(act: () => void): void {
  new MutationObserver((records) => {
    const isConcerned = records.some(({ addedNodes, removedNodes }) =>
      [...addedNodes, ...removedNodes].some(holdsGated),
    );
    if (isConcerned) act();
  }).observe(document, { childList: true, subtree: true });
}

function start(script: HTMLScriptElement): GpdConsent {
  const tag = readTag(script);
  const { on, emit } = createEvents();
  let view: View | null = null;
  let isReady = false;

  const act = createActs({ controller: () => controller, view: () => view });
  watchPage(act);

  function changed(state: ConsentSnapshot): void {
    if (state.phase === 'loading') return;
    guarded(() => view?.render());
    act();
    guarded(() => tag.google?.(new Set(state.granted)));
    if (!isReady) return;
    ready = Promise.resolve(state);
    emit('change', { ...state, recorded: controller.isRecorded() });
  }

  function becomeReady(): ConsentSnapshot {
    isReady = true;
    const state = controller.snapshot();
    emit('ready', state);
    return state;
  }

  const controller = createController({
    ...pageOf(tag),
    changed,
    recorded: (choices) => emit('recorded', choices),
    checked: () => act(),
  });

  async function load(): Promise<void> {
    await untilSeen();
    const words = await loadWords(tag, controller);
    if (!controller.terms() || view) return;
    const { language, theme } = tag;
    const speech = { words, language: language.tag };
    const toggled = (name: 'open' | 'close') => emit(name, controller.snapshot());
    view = createView({ ...controller, speech, direction: directionOf(language.code), theme, toggled });
    view.render();
    act();
  }

  // A fault of ours is not the page's: nothing is granted then.
  const first = load().catch(reportError).then(becomeReady);
  void first.then(({ problem }) => problem !== null && sayProblem(problem, location.origin));
  let ready = first;
  return Object.freeze({
    ...apiOf(first, controller, tag),
    // A page that asks after a change wants the state of then; the same promise until the next one, as renderers compare it.
    get ready() {
      return ready;
    },
    on,
    open: () => void first.then(() => (view ? undefined : load())).then(() => view?.open()),
    activate: act,
  } satisfies GpdConsent);
}

const { currentScript } = doc;
// The agent shares the name: each adds itself and leaves the other. A second snippet changes nothing.
const page = window as { gpd?: { consent?: GpdConsent } };
// A form of that id is no API.
page.gpd = (Object.hasOwn(page, 'gpd') && page.gpd) || {};
if (currentScript instanceof HTMLScriptElement) page.gpd.consent ??= start(currentScript);
else say('its script was loaded as a module. Leave type="module" out');
