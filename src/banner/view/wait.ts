import type { Controller } from '../controller.ts';
import { statusOf } from '../status.ts';
import { buttons, chip, type Dress, dress, h, nodes, press, purposeText } from './parts.ts';

/** The place of a frame, an image or a video that waits: it names its purposes, and asks for these alone. */

interface WaitDeps extends Dress, Pick<Controller, 'choose' | 'terms'> {
  /** Opens the settings. */
  readonly open: () => void;
}

/** A placeholder that already shows its key is not built again: that would take the focus off its buttons. */
const shown = new WeakMap<HTMLElement, string>();

/** @returns false for a purpose that the tenant does not have: nobody can agree to it */
export function fillWait(host: HTMLElement, ids: readonly string[], view: WaitDeps): boolean {
  const { speech, choose, open } = view;
  const terms = view.terms();
  const purposes = terms?.config.purposes.filter(({ id }) => ids.includes(id)) ?? [];
  if (!terms || purposes.length < new Set(ids).size) return false;
  const statuses = purposes.map((purpose) => statusOf(terms, purpose));
  const key = [...ids, ...statuses].join(' ');
  if (shown.get(host) === key) return true;
  shown.set(host, key);
  const root = host.shadowRoot ?? dress(host, view);
  const error = h('p', { class: 'error', role: 'alert', hidden: true }, speech.words.failed);
  const accept = press(speech.words.accept, 'consent-wait-accept', () => {
    error.hidden = true;
    void choose(new Map(ids.map((id) => [id, true]))).then(({ outcome }) => {
      error.hidden = outcome !== 'failed';
    });
  });
  // A signal answers before a person is asked; the settings ask where the tenant lets them.
  const isAnswered = statuses.includes('gpc-opt-out');
  const settings = press(speech.words.settings, 'consent-wait-settings', open);
  const parts = [
    purposeText(purposes, speech),
    isAnswered && chip(speech),
    error,
    buttons(...(isAnswered ? [settings] : [accept, settings])),
  ];
  root.replaceChildren(h('section', { class: 'wait', 'data-nosnippet': true }, ...nodes(parts)));
  return true;
}
