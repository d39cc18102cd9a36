import type { IngestResponse } from '../types.ts';
import { el, facts } from './dom.ts';
import { WORDS } from './words.ts';

/** interface 2, TransparencyView. */
export interface View {
  readonly handle: string;
  readonly signals: readonly {
    readonly name: string;
    readonly entropyBits?: number;
    readonly band?: keyof typeof WORDS.bandWords;
  }[];
  readonly totalEntropyBits: number;
  readonly purposes: readonly string[];
  readonly qualitativeOnly: boolean;
}

export function verdictOf(response: IngestResponse): HTMLElement {
  const { class: name, confidence, suspectScore, requestId, visitorId } = response;
  const seen = confidence >= 0.99 ? WORDS.again : WORDS.first;
  return el(
    'section',
    { 'data-testid': 'verdict' },
    el('h2', {}, WORDS.verdictTitle),
    el('p', { class: 'answer' }, WORDS.classes[name]),
    visitorId === null ? el('p', {}, WORDS.nobody) : el('p', { class: 'quiet' }, seen),
    facts([
      [WORDS.score, suspectScore === null ? '–' : suspectScore.toFixed(2)],
      [WORDS.request, el('code', {}, requestId)],
    ]),
    ...(visitorId === null ? [] : [el('p', {}, WORDS.contest)]),
  );
}

function gives({ entropyBits, band }: View['signals'][number]): string {
  if (entropyBits !== undefined) return WORDS.bitsOf(entropyBits);
  return band === undefined ? '–' : WORDS.bandWords[band];
}

export function viewOf(view: View | null): HTMLElement {
  const title = el('h2', {}, WORDS.signalsTitle);
  if (view === null) return el('section', { 'data-testid': 'nothing' }, title, el('p', {}, WORDS.none));
  const rows = [...view.signals].sort((a, b) => (b.entropyBits ?? 0) - (a.entropyBits ?? 0));
  return el(
    'section',
    { 'data-testid': 'view' },
    title,
    el('p', {}, view.qualitativeOnly ? WORDS.bands : WORDS.bits(view.totalEntropyBits)),
    el(
      'table',
      {},
      el('thead', {}, el('tr', {}, el('th', {}, WORDS.signal), el('th', {}, WORDS.gives))),
      el(
        'tbody',
        {},
        ...rows.map((signal) =>
          el('tr', {}, el('td', {}, WORDS.names[signal.name] ?? signal.name), el('td', {}, gives(signal))),
        ),
      ),
    ),
    facts([[WORDS.handle, el('code', {}, view.handle)]]),
  );
}
