import type { Controller } from '../controller.ts';
import { statusOf } from '../status.ts';
import { button, buttonRow, chip, purposeText } from './layer.ts';
import { type Dress, dressHost, h, make, nodes } from './parts.ts';
import { css } from './sheet.css';

/** The placeholder of a gated frame, image or video names the purposes of the element and asks for them. */

export interface WaitDeps extends Dress, Pick<Controller, 'choose' | 'terms'> {
  /** Opens the settings. */
  readonly open: () => void;
}

/** A placeholder with the same purposes and statuses is not built again: its buttons would lose the focus. */
const shownKeys = new WeakMap<HTMLElement, string>();

/** @returns false if the tenant lacks one of the purposes: nobody can agree to it */
export function fillWait(host: HTMLElement, ids: readonly string[], view: WaitDeps): boolean {
  const { speech, choose, open } = view;
  const terms = view.terms();
  const purposes = terms?.config.purposes.filter(({ id }) => ids.includes(id)) ?? [];
  if (!terms || purposes.length < new Set(ids).size) return false;
  const statuses = purposes.map((purpose) => statusOf(terms, purpose));
  const key = [...ids, ...statuses].join(' ');
  if (shownKeys.get(host) === key) return true;
  shownKeys.set(host, key);
  const root = host.shadowRoot ?? dressHost(host, { ...view, css: view.css + css });
  const error = h('p', { class: 'error', role: 'alert', hidden: true }, speech.words.failed);
  const grant = (): void => {
    error.hidden = true;
    void choose(new Map(ids.map((id) => [id, true]))).then(({ outcome }) => {
      error.hidden = outcome !== 'failed';
    });
  };
  const accept = button(make, speech.words.accept, 'consent-wait-accept', { click: grant });
  // GPC has answered already. The settings may ask for a yes over it, if the tenant allows that.
  const isAnswered = statuses.includes('gpc-opt-out');
  const settings = button(make, speech.words.settings, 'consent-wait-settings', { click: open });
  const parts = [
    purposeText(make, purposes, speech),
    isAnswered && chip(make, speech),
    error,
    buttonRow(make, ...(isAnswered ? [settings] : [accept, settings])),
  ];
  root.replaceChildren(h('section', { class: 'wait', 'data-nosnippet': true }, ...nodes(parts)));
  return true;
}
