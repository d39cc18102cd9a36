import type { EvidenceKey } from '../../keys/evidence-key.ts';
import { isoTime } from '../../lib/clock.ts';
import { ENGLISH } from '../../lib/people/say.ts';
import { renderPage } from '../dsar/archive-page-files.ts';
import type { ChoiceTally } from './definitions.ts';
import { type InForce, textIn } from './log-scan.ts';
import type { EvidenceSource } from './parts-service.ts';

/** `README.html` of a file of evidence: for a person who is no engineer, without a network. */

export interface ReadmeFacts {
  readonly source: EvidenceSource;
  readonly key: EvidenceKey;
  readonly language: string;
  /** The number of entries under the newest checkpoint. */
  readonly size: number;
  readonly entries: number;
  readonly tombstones: number;
  readonly tally: ChoiceTally;
  readonly definitions: readonly InForce[];
  /** The version of gpd. */
  readonly version: string;
  /** The keyed reference of the person; null: all people. */
  readonly subject: string | null;
}

const CHOICES: Readonly<Record<string, string>> = {
  granted: 'Agreed',
  denied: 'Refused',
  withdrawn: 'Withdrew',
  'gpc-opt-out': 'Opted out by Global Privacy Control',
  doubted: 'Marked: given by a program, or cleared by a review',
  linked: 'A browser was joined with the account',
};

const textOr = (text: string, fallback: string): string => (text.trim() === '' ? fallback : text);

/** A day where it is the midnight of one, as people write it. */
const dayOrTime = (at: number): string => isoTime(at).replace('T00:00:00.000Z', '');

export function readmePage(facts: ReadmeFacts): Promise<string> {
  const { source, key, definitions, tally } = facts;
  const { tenant, request, person } = source;
  const titles = new Map(
    definitions
      .filter(({ type, body }) => type === 'purpose.defined' && body['title'] !== undefined)
      .map(({ body }) => [textIn(body, 'id'), textIn(body, 'title')]),
  );
  return renderPage('evidence/readme', {
    ...facts,
    ...{ title: 'Evidence of consent', person, thumbprint: key.thumbprint },
    ...{ kid: tenant.kid, log: tenant.signer.name, vkey: tenant.signer.vkey },
    controller: textOr(tenant.settings['notice.controller'], ENGLISH.say('notice.noController')),
    contact: textOr(tenant.settings['notice.contact'], ENGLISH.say('notice.noContact')),
    from: dayOrTime(request.from),
    to: dayOrTime(request.to),
    choiceText: (choice: string): string => CHOICES[choice] ?? choice,
    titleOf: (id: string): string => titles.get(id) ?? tenant.termsOf(id)?.title ?? id,
    isoTime,
    choices: [...tally.choices].sort(([a], [b]) => a.localeCompare(b, 'en')),
  });
}
