import { describe, expect, it } from 'vitest';
import type { Classification } from '../../../src/ingest/verdict/classify.ts';
import type { KnownDevice } from '../../../src/ingest/verdict/identity.ts';
import { type DecideInput, decide, readGiver } from '../../../src/ingest/verdict/verdict.ts';
import { createConsentState, NOW } from '../../support/make.ts';

/** Classification, identity, a verified agent and a reviewer's override become one verdict (contract 3.4). */

const KNOWN_DEVICE: KnownDevice = {
  seen: false,
  neverAutomation: false,
  marked: false,
  spread: { networksToday: 1, pairsOfWeek: 1, tenantPairsOfWeek: 1 },
};
const HUMAN: Classification = {
  class: 'human',
  score: 0,
  rules: [],
  inconsistency: 0,
  automation: false,
  counterfactual: null,
};
const AUTOMATION: Classification = {
  class: 'undeclared_automation',
  score: 0.9,
  rules: [{ id: 'A1', weight: 0.9, kind: 'A' }],
  inconsistency: 0,
  automation: true,
  counterfactual: { decisive: [{ id: 'A1', class: 'human' }], withoutAll: null },
};
const TAMPERED: Classification = {
  class: 'unknown',
  score: 0.65,
  rules: [
    { id: 'T1', weight: 0.35, kind: 'T' },
    { id: 'T4', weight: 0.3, kind: 'T' },
  ],
  inconsistency: 2,
  automation: false,
  counterfactual: null,
};
const TWO_MEDIUM: Classification = {
  class: 'undeclared_automation',
  score: 0.35,
  rules: [
    { id: 'M1', weight: 0.15, kind: 'M' },
    { id: 'M2', weight: 0.2, kind: 'M' },
  ],
  inconsistency: 0,
  automation: false,
  counterfactual: null,
};
const AGENT = 'https://agent.example';

function verdict(over: Partial<DecideInput>): ReturnType<typeof decide> {
  return decide({
    requestId: 'req_1',
    now: NOW,
    identity: { durable: 'd', visitorId: 'v', epoch: 1 },
    known: KNOWN_DEVICE,
    classification: HUMAN,
    defenses: [],
    declaredAgentId: null,
    needsAttestation: false,
    consentState: createConsentState(),
    policyVersion: 'p',
    monitor: false,
    incomplete: false,
    ...over,
  });
}

const overridden = { known: { ...KNOWN_DEVICE, neverAutomation: true } };

describe('declared_agent', () => {
  it.each([HUMAN, AUTOMATION, TAMPERED, TWO_MEDIUM])(
    'if and only if Web Bot Auth verified: $class',
    (classification) => {
      expect(verdict({ classification, declaredAgentId: AGENT }).class).toBe('declared_agent');
      expect(verdict({ classification, declaredAgentId: null }).class).toBe(classification.class);
    },
  );

  it.each([
    [HUMAN, false],
    [TAMPERED, false],
    [TWO_MEDIUM, false],
    [AUTOMATION, true],
  ])('is a bot if and only if an A rule fired: $class', (classification, bot) => {
    const declared = verdict({ classification, declaredAgentId: AGENT });
    expect(declared.smartSignals.bot).toBe(bot);
    expect(declared.suspectScore).toBe(classification.score);
    expect(declared.declaredAgentId).toBe(AGENT);
  });

  it("stays what it is beside a reviewer's override of the device", () => {
    const declared = verdict({ ...overridden, classification: AUTOMATION, declaredAgentId: AGENT });
    expect(declared).toMatchObject({
      class: 'declared_agent',
      overridden: false,
      smartSignals: { bot: true },
    });
    expect(declared.suspectScore).toBe(0.9);
  });
});

describe("a reviewer's override", () => {
  it.each([AUTOMATION, TWO_MEDIUM, TAMPERED])(
    'makes $class human, no bot, and at most 0.2 suspect',
    (classification) => {
      const calmed = verdict({ ...overridden, classification });
      expect(calmed).toMatchObject({
        class: 'human',
        overridden: true,
        suspectScore: 0.2,
        smartSignals: { bot: false },
      });
      expect(calmed.rules).toEqual(classification.rules);
    },
  );

  it('leaves a human as it is', () => {
    const human = { ...HUMAN, score: 0.06 };
    expect(verdict({ ...overridden, classification: human })).toMatchObject({
      class: 'human',
      overridden: false,
      suspectScore: 0.06,
    });
  });
});

describe('a privacy defense', () => {
  it('leaves at most 0.2 of suspicion and no mark of tampering', () => {
    const calmed = verdict({ classification: TAMPERED, defenses: ['firefox-rfp'] });
    expect(calmed).toMatchObject({ class: 'unknown', suspectScore: 0.2 });
    expect(calmed.smartSignals).toMatchObject({ tampered: false, inconsistency: 2 });
  });

  it('does not lower the score of an A rule', () => {
    expect(verdict({ classification: AUTOMATION, defenses: ['brave'] })).toMatchObject({
      class: 'undeclared_automation',
      suspectScore: 0.9,
      smartSignals: { bot: true },
    });
  });

  it('raises no score', () => {
    expect(verdict({ classification: { ...HUMAN, score: 0.04 }, defenses: ['brave'] }).suspectScore).toBe(
      0.04,
    );
  });
});

describe('smartSignals', () => {
  it.each([
    [HUMAN, { bot: false, tampered: false, inconsistency: 0 }],
    [TAMPERED, { bot: false, tampered: true, inconsistency: 2 }],
    [AUTOMATION, { bot: true, tampered: false, inconsistency: 0 }],
    [TWO_MEDIUM, { bot: true, tampered: false, inconsistency: 0 }],
  ])('of $class', (classification, expected) => {
    expect(verdict({ classification }).smartSignals).toEqual({ incognito: false, ...expected });
  });
});

describe('attestation and confidence', () => {
  it.each([
    ['nobody', { identity: null, needsAttestation: true }, 0, false],
    ['a first sighting', {}, 0.6, false],
    ['a repeat', { known: { ...KNOWN_DEVICE, seen: true } }, 0.99, false],
    ['a shared id', { needsAttestation: true }, 0.6, true],
  ])('%s', (_name, over, confidence, needsAttestation) => {
    expect(verdict(over)).toMatchObject({ confidence, needsAttestation });
  });
});

describe('what would have changed the class', () => {
  it('is recorded with the verdict, and nothing where no strong rule fired', () => {
    expect(verdict({ classification: AUTOMATION }).counterfactual).toEqual(AUTOMATION.counterfactual);
    expect(verdict({ classification: HUMAN })).not.toHaveProperty('counterfactual');
  });
});

describe('the grant that the visit rode on', () => {
  it.each<readonly [string, string, Partial<DecideInput>]>([
    ['a rule of kind A', 'undeclared_automation', { classification: AUTOMATION }],
    ['a signature', 'declared_agent', { classification: HUMAN, declaredAgentId: AGENT }],
    ['a signature beside oddities', 'declared_agent', { classification: TWO_MEDIUM, declaredAgentId: AGENT }],
  ])('is doubted by %s', (_name, giver, over) => {
    const doubting = verdict({ ...over, grantSeq: 7 });
    expect(readGiver(doubting)).toBe(giver);
    expect(doubting.grantSeq).toBe(7);
    expect(verdict(over)).not.toHaveProperty('grantSeq');
  });

  it.each<readonly [string, string, Partial<DecideInput>]>([
    ['oddities that people have too', 'unknown', { classification: TWO_MEDIUM }],
    [
      'a contradiction and an oddity',
      'unknown',
      { classification: { ...TAMPERED, class: 'undeclared_automation' } },
    ],
    ['a contradiction alone', 'unknown', { classification: TAMPERED }],
    ['a person', 'human', { classification: HUMAN }],
    ["a reviewer's override", 'human', { ...overridden, classification: AUTOMATION }],
  ])('is not doubted by %s', (_name, giver, over) => {
    const calm = verdict({ ...over, grantSeq: 7 });
    expect(readGiver(calm)).toBe(giver);
    expect(calm).not.toHaveProperty('grantSeq');
  });
});

describe("the operator's own monitor", () => {
  it('keeps its class and is no suspect', () => {
    expect(verdict({ classification: AUTOMATION, monitor: true })).toMatchObject({
      class: 'undeclared_automation',
      suspectScore: 0.2,
      monitor: true,
    });
  });
});
