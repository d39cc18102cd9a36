import { asked, type Terms } from '../status.ts';
import type { ChoiceResult } from '../types.ts';
import { css } from './banner.css';
import { h } from './dom.ts';
import { layerParts, reopenParts, type Speech, sheetParts } from './parts.ts';
import { makeRoom } from './room.ts';

/** The region, the settings and the button that stays, in a shadow root of their own. */

export interface ViewDeps {
  readonly speech: Speech;
  readonly direction: 'ltr' | 'rtl';
  readonly theme: string | null;
  readonly choose: (wants: ReadonlyMap<string, boolean>) => Promise<ChoiceResult>;
  readonly toggled: (name: 'open' | 'close') => void;
  /** As they are now: a choice gets its entry, and ends, while the page stays. Null: not known, and nothing to show. */
  readonly terms: () => Terms | null;
}

export interface View {
  render(): void;
  open(): void;
}

function makeHost({ speech, direction, theme }: ViewDeps): { host: HTMLElement; root: ShadowRoot } {
  const host = document.createElement('gpd-consent');
  host.lang = speech.language;
  host.dir = direction;
  if (theme !== null) host.dataset['theme'] = theme;
  const root = host.attachShadow({ mode: 'open' });
  // A sheet made by script is no inline style: `style-src 'none'` lets it be (CSP 3, 8.2; CSSOM).
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  root.adoptedStyleSheets = [sheet];
  return { host, root };
}

/** Where the keyboard is, through shadow roots. */
function focused(): HTMLElement | null {
  let at: Element | null = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at instanceof HTMLElement && at !== document.body ? at : null;
}

const isShown = (element: HTMLElement): boolean => element.isConnected && element.getClientRects().length > 0;

export function makeView(deps: ViewDeps): View {
  const { speech } = deps;
  const { words } = speech;
  const { host, root } = makeHost(deps);
  const error = (): HTMLElement => h('p', { class: 'error', role: 'alert', hidden: true });
  const errors = { layer: error(), sheet: error() };
  const layer = h('section', { class: 'layer', 'aria-labelledby': 'title', 'data-testid': 'consent-banner' });
  const reopen = h('button', {
    type: 'button',
    class: 'reopen',
    'aria-haspopup': 'dialog',
    click: () => open(),
  });
  reopen.dataset['testid'] = 'consent-reopen';
  const sheet = h('div', { class: 'sheet' });
  const dialog = h('dialog', { 'aria-labelledby': 'settings-title', close: () => closed() }, sheet);
  const heard = h('p', { class: 'heard', role: 'status' });
  root.append(layer, reopen, dialog, heard);
  makeRoom([layer, reopen]);
  let shown = '';
  let opener: HTMLElement | null = null;
  /** A press that is on its way; a second one there is the same. */
  const busy = new Set<HTMLElement>();

  /** A page that renews its body takes the host away; it comes back, once a frame at most. */
  const stay = new MutationObserver(() => {
    if (!host.isConnected) requestAnimationFrame(attach);
  });

  function attach(): void {
    if (host.isConnected) return;
    // Taken away open, it would be no modal dialog any more.
    dialog.close();
    document.body.prepend(host);
    stay.observe(document.documentElement, { childList: true });
    stay.observe(document.body, { childList: true });
  }

  function render(): void {
    const next = deps.terms();
    if (!next) return;
    attach();
    const open = asked(next);
    const key = open.map(({ id }) => id).join(' ');
    const had = layer.contains(root.activeElement);
    if (key !== shown && open.length > 0) {
      errors.layer.hidden = true;
      const actions = {
        choose: (wanted: boolean) => void answer(new Map(open.map(({ id }) => [id, wanted])), errors.layer),
        open: show,
      };
      layer.replaceChildren(...nodes(layerParts(speech, next, actions)), errors.layer);
      // The message stands above the buttons that it is about.
      layer.querySelector('.buttons')?.before(errors.layer);
    }
    shown = key;
    layer.hidden = open.length === 0;
    reopen.hidden = !layer.hidden;
    reopen.replaceChildren(...nodes(reopenParts(speech, next.gpc)));
    if (had && layer.hidden && !dialog.open) reopen.focus({ preventScroll: true });
  }

  async function answer(wants: ReadonlyMap<string, boolean>, place: HTMLElement): Promise<void> {
    if (busy.has(place)) return;
    busy.add(place);
    place.hidden = true;
    const { outcome } = await deps.choose(wants).finally(() => busy.delete(place));
    if (outcome === 'failed') {
      place.textContent = words.failed;
      place.hidden = false;
      return;
    }
    heard.textContent = outcome === 'recorded' ? words.saved : words.later;
    // They may have been opened while the first layer's answer was on its way.
    if (place === errors.sheet) dialog.close();
  }

  function show(): void {
    const terms = deps.terms();
    if (!terms) return;
    attach();
    if (dialog.open) return;
    opener = focused();
    heard.textContent = '';
    errors.sheet.hidden = true;
    const actions = {
      save: (wants: ReadonlyMap<string, boolean>) => void answer(wants, errors.sheet),
      close: () => dialog.close(),
    };
    sheet.replaceChildren(...nodes(sheetParts(speech, terms, actions, errors.sheet)));
    dialog.showModal();
    // Its place stays: what is scrolled does not jump.
    layer.classList.add('covered');
    deps.toggled('open');
  }

  /** Escape comes here too: nothing was chosen, and the keyboard goes back to where it was. */
  function closed(): void {
    // Closed with a body that was renewed, and open again since.
    if (dialog.open) return;
    layer.classList.remove('covered');
    const target = opener && isShown(opener) ? opener : reopen;
    target.focus({ preventScroll: true });
    opener = null;
    deps.toggled('close');
  }

  const nodes = (children: ReturnType<typeof layerParts>): (Node | string)[] =>
    children.filter((child) => child !== false && child !== null);
  const open = show;
  return { render, open };
}
