import type { Config, Purpose } from '../../src/banner/config.ts';
import type { Choice, ConsentRecord } from '../../src/banner/record.ts';
import type { Terms } from '../../src/banner/status.ts';
import { NOW } from '../support/make.ts';

export const DAY = 86_400_000;
export const AGENT = 'device-identification';

export function makePurpose(over: Partial<Purpose> = {}): Purpose {
  return { id: AGENT, title: 'Device', description: 'Why.', gpc: 'opt-out', ttlDays: 180, ...over };
}

export const analytics = makePurpose({ id: 'analytics', gpc: 'ignore', ttlDays: 30 });

export function makeConfig(over: Partial<Config> = {}): Config {
  return {
    kid: 'shop',
    policy: { version: 3, material: 2, url: '' },
    title: '',
    body: '',
    purposes: [makePurpose(), analytics],
    gpc: false,
    ...over,
  };
}

export function makeChoice(over: Partial<Choice> = {}): Choice {
  const proof = { seq: 7, hash: 'a'.repeat(64) };
  return { choice: 'granted', version: 3, at: NOW - DAY, until: NOW + DAY, proof, ...over };
}

export function makeRecord(
  choices: ConsentRecord['choices'] = {},
  over: Partial<ConsentRecord> = {},
): ConsentRecord {
  return { secret: 's'.repeat(43), principalId: `b_${'i'.repeat(43)}`, choices, pending: [], ...over };
}

export function makeTerms(over: Partial<Terms> = {}): Terms {
  return { config: makeConfig(), record: null, gpc: false, now: NOW, askedAt: {}, ...over };
}
