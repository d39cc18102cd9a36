import type { IngestResponse } from '../types.ts';
import { el } from './dom.ts';
import { WORDS } from './locales/en.ts';

/** All there is to show where the server cannot be asked for more. */
export function verdictOf({ class: name, requestId, visitorId }: IngestResponse): HTMLElement {
  return el(
    'section',
    { 'data-testid': 'verdict' },
    el('h2', {}, WORDS.verdictTitle),
    el('p', { class: 'answer' }, WORDS.classes[name]),
    ...(visitorId === null ? [el('p', {}, WORDS.nobody)] : []),
    el('p', { class: 'quiet' }, WORDS.request, ' ', el('code', {}, requestId)),
  );
}
