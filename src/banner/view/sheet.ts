import type { Purpose } from '../config.ts';
import type { Wants } from '../plan.ts';
import { choiceOf, endOf, statusOf, type Terms } from '../status.ts';
import { button, buttonRow, chip, foot, isolate, type Speech } from './layer.ts';
import { type Child, h, make } from './parts.ts';

/** Builds the settings: each purpose with its box, and when the person chose. */

/** Replaces each `{name}` by its value. */
function fillIn(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (_whole, name: string) => values[name] ?? '');
}

function historyOf({ words, language }: Speech, terms: Terms, purpose: Purpose): string {
  const choice = choiceOf(terms.record, purpose.id);
  if (statusOf(terms, purpose) === 'gpc-opt-out') return words.gpcWhy;
  if (!choice) return '';
  const until = endOf(terms.config, purpose, choice);
  const format = new Intl.DateTimeFormat(language, { dateStyle: 'long' });
  const seq =
    choice.proof?.hash && new Intl.NumberFormat(language, { useGrouping: false }).format(choice.proof.seq);
  return [
    fillIn(words[choice.choice], { date: format.format(choice.at) }),
    until > terms.now && fillIn(words.until, { date: format.format(until) }),
    seq && `${fillIn(words.entry, { seq })}.`,
  ]
    .filter(Boolean)
    .join(' ');
}

/** A separate question, which "accept all" does not answer. */
function askOverGpc({ words }: Speech, { id }: Purpose, at: number, save: SheetActions['save']): Child[] {
  const allow = button(make, words.gpcAllow, 'consent-over-gpc', {
    click: () => save(new Map([[id, 'over-gpc']])),
  });
  allow.id = `over-${at}`;
  allow.setAttribute('aria-labelledby', `over-${at} title-${at}`);
  return [h('p', { class: 'small' }, words.gpcAsk), buttonRow(make, allow)];
}

function purposeItem(speech: Speech, terms: Terms, at: number, actions: SheetActions): Child {
  const purpose = terms.config.purposes[at];
  if (!purpose) return null;
  const status = statusOf(terms, purpose);
  const box = h('input', {
    type: 'checkbox',
    name: purpose.id,
    'aria-describedby': `about-${at} past-${at}`,
    disabled: status === 'gpc-opt-out',
  });
  // A box is ticked only for a purpose that was granted, never in advance.
  box.checked = status === 'granted';
  return h(
    'li',
    {},
    h('label', {}, box, h('span', { id: `title-${at}` }, isolate(make, purpose.title))),
    h('p', { id: `about-${at}` }, isolate(make, purpose.description)),
    h('p', { id: `past-${at}`, class: 'quiet small' }, historyOf(speech, terms, purpose)),
    ...(actions.askedOverGpc.includes(purpose.id) ? askOverGpc(speech, purpose, at, actions.save) : []),
  );
}

export interface SheetActions {
  /** Ids of purposes for which a yes over GPC is asked now, and then not again for a year. */
  readonly askedOverGpc: readonly string[];
  readonly save: (wants: Wants) => void;
  readonly close: () => void;
  readonly saveReceipt: () => void;
}

/** The settings show each purpose with its box, and when the person chose. */
export function sheetParts(speech: Speech, terms: Terms, actions: SheetActions, error: HTMLElement): Child[] {
  const { words } = speech;
  const { purposes } = terms.config;
  const list = h(
    'ul',
    { class: 'purposes' },
    ...purposes.map((_one, at) => purposeItem(speech, terms, at, actions)),
  );
  const saveAll = (isGranted: boolean) => () =>
    actions.save(new Map(purposes.map(({ id }) => [id, isGranted])));
  const saveTicked = (): void => {
    const boxes = [...list.querySelectorAll('input')];
    actions.save(new Map(boxes.map(({ name, checked }) => [name, checked])));
  };
  return [
    h(
      'div',
      { class: 'head' },
      h('h2', { id: 'settings-title', tabindex: '-1', autofocus: true }, words.reopen),
      button(make, words.close, 'consent-close', { click: actions.close }),
    ),
    terms.gpc && chip(make, speech),
    list,
    error,
    buttonRow(
      make,
      button(make, words.save, 'consent-save', { click: saveTicked }),
      button(make, words.acceptAll, 'consent-accept-all', { click: saveAll(true) }),
      button(make, words.rejectAll, 'consent-reject-all', { click: saveAll(false) }),
    ),
    foot(make, speech, terms),
    // The ledger has nothing to confirm for a browser that never chose.
    terms.record && button(make, words.receipt, 'consent-receipt', { click: actions.saveReceipt }),
  ];
}
