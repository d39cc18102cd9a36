import { doc } from '../../browser/page.ts';
import type { Controller } from '../controller.ts';
import type { Wants } from '../plan.ts';
import { askedPurposes } from '../status.ts';
import { type Dress, dress, h, layerParts, nodes, reopenParts, sheetParts } from './parts.ts';
import { createPlace } from './place.ts';
import { createRoom } from './room.ts';
import { fillWait } from './wait.ts';

/** The region, the settings and the button that stays, in one shadow root. */

export interface ViewDeps extends Dress, Pick<Controller, 'choose' | 'startAsking' | 'terms'> {
  readonly toggled: (name: 'open' | 'close') => void;
}

export type View = ReturnType<typeof createView>;

function createHost(deps: ViewDeps): { host: HTMLElement; root: ShadowRoot } {
  const host = doc.createElement('gpd-consent');
  return { host, root: dress(host, deps) };
}

/** The focused element, through shadow roots. */
function focused(): HTMLElement | null {
  let at: Element | null = doc.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at instanceof HTMLElement && at !== doc.body ? at : null;
}

const isShown = (element: HTMLElement): boolean => element.isConnected && element.getClientRects().length > 0;

/** The elements of the shadow root and the state: every function below takes it. */
interface Shown extends ViewDeps, ReturnType<typeof createHost>, ReturnType<typeof createElements> {
  /** The purposes that the first layer asks about. */
  asks: string;
  opener: HTMLElement | null;
  /** A press that is on its way; a second one there is the same. */
  readonly busy: Set<HTMLElement>;
  attach(): void;
}

function createElements(root: ShadowRoot, opened: () => void, closed: () => void) {
  const error = (): HTMLElement => h('p', { class: 'error', role: 'alert', hidden: true });
  const layer = h('section', {
    class: 'layer',
    'aria-labelledby': 'title',
    'data-testid': 'consent-banner',
    'data-nosnippet': true,
  });
  const reopen = h('button', { type: 'button', class: 'reopen', 'aria-haspopup': 'dialog', click: opened });
  reopen.dataset['testid'] = 'consent-reopen';
  const sheet = h('div', { class: 'sheet', 'data-nosnippet': true });
  const dialog = h('dialog', { 'aria-labelledby': 'settings-title', close: closed }, sheet);
  const heard = h('p', { class: 'heard', role: 'status' });
  root.append(layer, reopen, dialog, heard);
  const follow = createRoom([layer, reopen]);
  return { layer, reopen, sheet, dialog, heard, follow, errors: { layer: error(), sheet: error() } };
}

function render(view: Shown): void {
  const { speech, layer, reopen, errors } = view;
  const next = view.terms();
  if (!next) return;
  const open = askedPurposes(next);
  const asks = open.map(({ id }) => id).join(' ');
  const had = layer.contains(view.root.activeElement);
  if (asks !== view.asks && open.length > 0) {
    errors.layer.hidden = true;
    const choose = (isGranted: boolean): void =>
      void answer(view, new Map(open.map(({ id }) => [id, isGranted])), errors.layer);
    const parts = layerParts(speech, next, { choose, open: () => show(view) });
    layer.replaceChildren(...nodes(parts), errors.layer);
    // The message is above the buttons that it is about.
    layer.querySelector('.buttons')?.before(errors.layer);
  }
  view.asks = asks;
  layer.hidden = open.length === 0;
  reopen.hidden = !layer.hidden;
  reopen.replaceChildren(...nodes(reopenParts(speech, next.gpc)));
  view.attach();
  if (had && layer.hidden && !view.dialog.open) reopen.focus({ preventScroll: true });
}

async function answer(view: Shown, wants: Wants, place: HTMLElement): Promise<void> {
  const { busy, heard } = view;
  const { words } = view.speech;
  if (busy.has(place)) return;
  busy.add(place);
  place.hidden = true;
  const { outcome } = await view.choose(wants).finally(() => busy.delete(place));
  if (outcome === 'failed') {
    place.textContent = words.failed;
    place.hidden = false;
    return;
  }
  heard.textContent = outcome === 'recorded' ? words.saved : words.later;
  // They may have been opened while the first layer's answer was on its way.
  if (place === view.errors.sheet) view.dialog.close();
}

function show(view: Shown): void {
  const { dialog, errors } = view;
  const terms = view.terms();
  if (!terms) return;
  view.attach();
  if (dialog.open) return;
  view.opener = focused();
  view.heard.textContent = '';
  errors.sheet.hidden = true;
  const actions = {
    asks: view.startAsking(),
    save: (wants: Wants) => void answer(view, wants, errors.sheet),
    close: () => dialog.close(),
  };
  view.sheet.replaceChildren(...nodes(sheetParts(view.speech, terms, actions, errors.sheet)));
  dialog.showModal();
  // Its place stays: what is scrolled does not jump.
  view.layer.classList.add('covered');
  view.toggled('open');
}

/** Escape comes here too: nothing was chosen, and the focus returns to where it was. */
function closed(view: Shown): void {
  // Closed with a body that was renewed, and open again since.
  if (view.dialog.open) return;
  view.layer.classList.remove('covered');
  const target = view.opener && isShown(view.opener) ? view.opener : view.reopen;
  target.focus({ preventScroll: true });
  view.opener = null;
  view.toggled('close');
}

export function createView(deps: ViewDeps) {
  const shadowHost = createHost(deps);
  const elements = createElements(
    shadowHost.root,
    () => show(view),
    () => closed(view),
  );
  const attach = createPlace(shadowHost.host, elements);
  const view: Shown = {
    ...deps,
    ...shadowHost,
    ...elements,
    asks: '',
    opener: null,
    busy: new Set(),
    attach,
  };
  return {
    render: () => render(view),
    open: () => show(view),
    /** Fills the place of an element that waits for these purposes. */
    fillWait: (host: HTMLElement, ids: readonly string[]) =>
      fillWait(host, ids, { ...deps, open: () => show(view) }),
  };
}
