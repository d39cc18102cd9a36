import { doc } from '../../browser/page.ts';
import type { Controller } from '../controller.ts';
import { isRefusedEarly } from '../fragment.ts';
import type { LoadExtras } from '../load-extras.ts';
import type { Wants } from '../plan.ts';
import { askedPurposes, grantedPurposes, type Terms } from '../status.ts';
import { createLayer, layerParts, REFUSED } from './layer.ts';
import { type Dress, dressHost, h, listen, make, nodes, reopenParts } from './parts.ts';
import { createPlace } from './place.ts';
import { createRoom } from './room.ts';
import type { WaitDeps } from './wait.ts';

/** Shows the first layer, the settings and the button that reopens them, in one shadow root. */

export interface ViewDeps
  extends Dress,
    Pick<Controller, 'choose' | 'receiptPage' | 'startAsking' | 'terms'> {
  readonly loadExtras: LoadExtras;
  readonly onToggle: (name: 'open' | 'close') => void;
  /** The element that the page's server wrote into the page; the view takes over what is in it. */
  readonly host: HTMLElement | null;
}

export type View = ReturnType<typeof createView>;

function createHost(deps: ViewDeps): { host: HTMLElement; root: ShadowRoot } {
  const host = deps.host ?? doc.createElement('gpd-consent');
  return { host, root: dressHost(host, deps) };
}

/** The focused element, through shadow roots. */
function findFocused(): HTMLElement | null {
  let at: Element | null = doc.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at instanceof HTMLElement && at !== doc.body ? at : null;
}

/** Set on a link or button of the page. */
export const CHOICES_LINK = '[data-gpd-choices]';

const isShown = (element: HTMLElement): boolean => element.isConnected && element.getClientRects().length > 0;

/** The elements of the shadow root and the state, which every function below takes. */
interface ViewState
  extends Omit<ViewDeps, 'host'>,
    ReturnType<typeof createHost>,
    ReturnType<typeof createElements> {
  /** Ids of the purposes that the first layer asks about. */
  askedIds: readonly string[];
  /** True if the settings did not come: the first layer asks about each purpose. */
  isAskingAll: boolean;
  opener: HTMLElement | null;
  /** Error lines of the parts whose answer is being saved: a second press there is ignored. */
  readonly busy: Set<HTMLElement>;
  attachHost(): void;
}

function createElements(root: ShadowRoot, opened: () => void, closed: () => void) {
  const error = (): HTMLElement => h('p', { class: 'error', role: 'alert', hidden: true });
  const drawn = root.querySelector<HTMLElement>('.layer');
  const layer = drawn ?? createLayer(make);
  const reopen = h('button', { type: 'button', class: 'reopen', 'aria-haspopup': 'dialog', click: opened });
  reopen.dataset['testid'] = 'consent-reopen';
  const sheet = h('div', { class: 'sheet', 'data-nosnippet': true });
  const dialog = h('dialog', { 'aria-labelledby': 'settings-title', close: closed }, sheet);
  const statusLine = h('p', { class: 'heard', role: 'status' });
  // An element that is moved loses the focus.
  root.append(...nodes([drawn ? null : layer, reopen, dialog, statusLine]));
  const follow = createRoom([layer, reopen]);
  return { layer, reopen, sheet, dialog, statusLine, follow, errors: { layer: error(), sheet: error() } };
}

/** Leaves what is drawn already, by this script or by the page's server: its buttons keep the focus. */
function drawLayer({ layer, errors, speech }: ViewState, terms: Terms): void {
  const parts = nodes(layerParts(make, speech, terms)) as Node[];
  const shown = [...layer.children].filter((child) => child !== errors.layer);
  const isDrawn =
    parts.length === shown.length && parts.every((part, i) => part.isEqualNode(shown[i] ?? null));
  if (!isDrawn) layer.replaceChildren(...parts);
  // The message is above the buttons that failed.
  if (!layer.contains(errors.layer)) layer.querySelector('.buttons')?.before(errors.layer);
}

/** Hides the button while people can see a link of the page that opens the settings. */
function updateReopen({ reopen, layer }: ViewState): void {
  const links = doc.querySelectorAll<HTMLElement>(CHOICES_LINK);
  reopen.hidden = !layer.hidden || [...links].some(isShown);
}

function shownTerms({ terms, isAskingAll }: ViewState): Terms | null {
  const present = terms();
  if (!present || !isAskingAll) return present;
  // Under GPC an answer changes only what was agreed to over it.
  const purposes = present.gpc ? grantedPurposes(present) : present.config.purposes;
  return { ...present, record: null, gpc: false, config: { ...present.config, purposes } };
}

function render(view: ViewState): void {
  const { speech, layer, reopen } = view;
  const terms = shownTerms(view);
  if (!terms) return;
  view.askedIds = askedPurposes(terms).map(({ id }) => id);
  const hadFocus = layer.contains(view.root.activeElement);
  layer.hidden = view.askedIds.length === 0;
  if (!layer.hidden) drawLayer(view, terms);
  updateReopen(view);
  reopen.replaceChildren(...nodes(reopenParts(speech, terms.gpc)));
  view.attachHost();
  if (hadFocus && layer.hidden && !view.dialog.open) reopen.focus({ preventScroll: true });
}

/** The layer hears its buttons, so that those of the page's server work as well. */
function onLayerPressed(view: ViewState, { target }: Event): void {
  const hook = (target as Element).closest('button')?.dataset['testid'];
  if (hook === 'consent-settings') void openSettings(view);
  else if (hook !== undefined) void answerAll(view, view.askedIds, hook === 'consent-accept');
}

const answerAll = (view: ViewState, ids: readonly string[], isGranted: boolean): Promise<void> =>
  saveAnswer(view, new Map(ids.map((id) => [id, isGranted])), view.errors.layer);

/** Before the script ran, a press on Reject hid the layer. It answers what the markup asked: everything. */
async function takeEarlyRefusal(view: ViewState): Promise<void> {
  const terms = view.terms();
  if (terms && isRefusedEarly(view.root)) {
    const purposes = askedPurposes({ ...terms, record: null });
    await answerAll(
      view,
      purposes.map(({ id }) => id),
      false,
    );
  }
  view.root.getElementById(REFUSED)?.remove();
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
  if (view.isAskingAll) {
    view.isAskingAll = false;
    render(view);
  }
  // The settings may have been opened while the answer of the first layer was being saved.
  if (errorLine === view.errors.sheet) view.dialog.close();
}

/** A link is followed, because a window that opens after a wait is blocked. */
async function saveReceipt(view: ViewState): Promise<void> {
  const { words } = view.speech;
  const page = await view.receiptPage();
  const errorLine = view.errors.sheet;
  if (page) h('a', { href: URL.createObjectURL(page), download: 'receipt.html' }).click();
  else errorLine.textContent = words.noReceipt;
  // A message that a choice was not saved stays.
  if (errorLine.textContent !== words.failed) errorLine.hidden = !!page;
}

/** Without the settings the first layer asks about everything, so that a withdrawal needs no second file. */
function askAll(view: ViewState): void {
  view.isAskingAll = true;
  render(view);
}

async function openSettings(view: ViewState): Promise<void> {
  const { dialog, errors } = view;
  const opener = findFocused();
  const extras = await view.loadExtras();
  const terms = view.terms();
  if (!terms) return;
  if (!extras) {
    askAll(view);
    return;
  }
  view.attachHost();
  if (dialog.open) return;
  dressHost(view.host, { ...view, css: view.css + extras.css });
  view.opener = opener;
  view.statusLine.textContent = '';
  errors.sheet.hidden = true;
  const actions = {
    askedOverGpc: view.startAsking(),
    save: (wants: Wants) => void saveAnswer(view, wants, errors.sheet),
    close: () => dialog.close(),
    saveReceipt: () => void saveReceipt(view),
  };
  view.sheet.replaceChildren(...nodes(extras.sheetParts(view.speech, terms, actions, errors.sheet)));
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
    () => void openSettings(view),
    () => onSettingsClosed(view),
  );
  const attachHost = createPlace(shadowHost.host, elements);
  const view: ViewState = {
    ...deps,
    ...shadowHost,
    ...elements,
    askedIds: [],
    isAskingAll: false,
    opener: null,
    busy: new Set(),
    attachHost,
  };
  listen(view.layer, 'click', (event) => onLayerPressed(view, event));
  return {
    render: () => render(view),
    updateReopen: () => updateReopen(view),
    /** Renders for the first time. */
    begin(): void {
      render(view);
      void takeEarlyRefusal(view);
    },
    open: () => void openSettings(view),
    /** The words and acts of the placeholders. */
    wait: { ...deps, open: () => void openSettings(view) } satisfies WaitDeps,
  };
}
