import { doc } from '../../browser/page.ts';
import type { Controller } from '../controller.ts';
import type { Wants } from '../plan.ts';
import { askedPurposes } from '../status.ts';
import { type Dress, dressHost, h, layerParts, nodes, reopenParts, sheetParts } from './parts.ts';
import { createPlace } from './place.ts';
import { createRoom } from './room.ts';
import { fillWait } from './wait.ts';

/** Shows the first layer, the settings and the button that reopens them, in one shadow root. */

export interface ViewDeps extends Dress, Pick<Controller, 'choose' | 'startAsking' | 'terms'> {
  readonly onToggle: (name: 'open' | 'close') => void;
}

export type View = ReturnType<typeof createView>;

function createHost(deps: ViewDeps): { host: HTMLElement; root: ShadowRoot } {
  const host = doc.createElement('gpd-consent');
  return { host, root: dressHost(host, deps) };
}

/** The focused element, through shadow roots. */
function findFocused(): HTMLElement | null {
  let at: Element | null = doc.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at instanceof HTMLElement && at !== doc.body ? at : null;
}

const isShown = (element: HTMLElement): boolean => element.isConnected && element.getClientRects().length > 0;

/** The elements of the shadow root and the state, which every function below takes. */
interface ViewState extends ViewDeps, ReturnType<typeof createHost>, ReturnType<typeof createElements> {
  /** Ids of the purposes that the first layer asks about. */
  askedIds: string;
  opener: HTMLElement | null;
  /** Error lines of the parts whose answer is being saved: a second press there is ignored. */
  readonly busy: Set<HTMLElement>;
  attachHost(): void;
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
  const statusLine = h('p', { class: 'heard', role: 'status' });
  root.append(layer, reopen, dialog, statusLine);
  const follow = createRoom([layer, reopen]);
  return { layer, reopen, sheet, dialog, statusLine, follow, errors: { layer: error(), sheet: error() } };
}

function render(view: ViewState): void {
  const { speech, layer, reopen, errors } = view;
  const terms = view.terms();
  if (!terms) return;
  const open = askedPurposes(terms);
  const askedIds = open.map(({ id }) => id).join(' ');
  const hadFocus = layer.contains(view.root.activeElement);
  if (askedIds !== view.askedIds && open.length > 0) {
    errors.layer.hidden = true;
    const choose = (isGranted: boolean): void =>
      void saveAnswer(view, new Map(open.map(({ id }) => [id, isGranted])), errors.layer);
    const parts = layerParts(speech, terms, { choose, open: () => openSettings(view) });
    layer.replaceChildren(...nodes(parts), errors.layer);
    // The message is above the buttons that failed.
    layer.querySelector('.buttons')?.before(errors.layer);
  }
  view.askedIds = askedIds;
  layer.hidden = open.length === 0;
  reopen.hidden = !layer.hidden;
  reopen.replaceChildren(...nodes(reopenParts(speech, terms.gpc)));
  view.attachHost();
  if (hadFocus && layer.hidden && !view.dialog.open) reopen.focus({ preventScroll: true });
}

async function saveAnswer(view: ViewState, wants: Wants, errorLine: HTMLElement): Promise<void> {
  const { busy, statusLine } = view;
  const { words } = view.speech;
  if (busy.has(errorLine)) return;
  busy.add(errorLine);
  errorLine.hidden = true;
  const { outcome } = await view.choose(wants).finally(() => busy.delete(errorLine));
  if (outcome === 'failed') {
    errorLine.textContent = words.failed;
    errorLine.hidden = false;
    return;
  }
  statusLine.textContent = outcome === 'recorded' ? words.saved : words.later;
  // The settings may have been opened while the answer of the first layer was being saved.
  if (errorLine === view.errors.sheet) view.dialog.close();
}

function openSettings(view: ViewState): void {
  const { dialog, errors } = view;
  const terms = view.terms();
  if (!terms) return;
  view.attachHost();
  if (dialog.open) return;
  view.opener = findFocused();
  view.statusLine.textContent = '';
  errors.sheet.hidden = true;
  const actions = {
    askedOverGpc: view.startAsking(),
    save: (wants: Wants) => void saveAnswer(view, wants, errors.sheet),
    close: () => dialog.close(),
  };
  view.sheet.replaceChildren(...nodes(sheetParts(view.speech, terms, actions, errors.sheet)));
  dialog.showModal();
  // The covered layer keeps its size, so the page does not jump.
  view.layer.classList.add('covered');
  view.onToggle('open');
}

/** Runs after Escape too, which chooses nothing: the focus returns to where it was. */
function onSettingsClosed(view: ViewState): void {
  // The event is late: a page that replaced its body closed the dialog, and it is open again.
  if (view.dialog.open) return;
  view.layer.classList.remove('covered');
  const target = view.opener && isShown(view.opener) ? view.opener : view.reopen;
  target.focus({ preventScroll: true });
  view.opener = null;
  view.onToggle('close');
}

export function createView(deps: ViewDeps) {
  const shadowHost = createHost(deps);
  const elements = createElements(
    shadowHost.root,
    () => openSettings(view),
    () => onSettingsClosed(view),
  );
  const attachHost = createPlace(shadowHost.host, elements);
  const view: ViewState = {
    ...deps,
    ...shadowHost,
    ...elements,
    askedIds: '',
    opener: null,
    busy: new Set(),
    attachHost,
  };
  return {
    render: () => render(view),
    open: () => openSettings(view),
    /** Fills the placeholder of an element that waits for these purposes. */
    fillWait: (host: HTMLElement, ids: readonly string[]) =>
      fillWait(host, ids, { ...deps, open: () => openSettings(view) }),
  };
}
