import type { Config, Purpose } from '../../src/banner/config.ts';
import type { Choice, ConsentRecord } from '../../src/banner/record.ts';
import type { Terms } from '../../src/banner/status.ts';
import { NOW } from '../support/make.ts';

export const DAY = 86_400_000;
export const AGENT = 'device-identification';

export function createPurpose(over: Partial<Purpose> = {}): Purpose {
  const definition = { seq: 1, outdatedUntil: 0, optOutUntil: null, askUntil: null };
  return {
    id: AGENT,
    title: 'Device',
    description: 'Why.',
    gpc: 'opt-out',
    ttlDays: 180,
    definition,
    ...over,
  };
}

export const analytics = createPurpose({ id: 'analytics', gpc: 'ignore', ttlDays: 30 });

export function createConfig(over: Partial<Config> = {}): Config {
  return {
    kid: 'shop',
    policy: { version: 3, material: 2, url: '' },
    siteName: '',
    imprintUrl: '',
    title: '',
    body: '',
    purposes: [createPurpose(), analytics],
    gpc: false,
    refusalDays: 183,
    ...over,
  };
}

export function createChoice(over: Partial<Choice> = {}): Choice {
  const proof = { seq: 7, hash: 'a'.repeat(64) };
  return { choice: 'granted', version: 3, definition: 1, at: NOW - DAY, until: NOW + DAY, proof, ...over };
}

export function createRecord(
  choices: ConsentRecord['choices'] = {},
  over: Partial<ConsentRecord> = {},
): ConsentRecord {
  return {
    secret: 's'.repeat(43),
    principalId: `b_${'i'.repeat(43)}`,
    choices,
    pending: [],
    confirmedAt: NOW,
    ...over,
  };
}

export function createTerms(over: Partial<Terms> = {}): Terms {
  return {
    config: createConfig(),
    record: null,
    gpc: false,
    now: NOW,
    askedAt: {},
    ...over,
  };
}
