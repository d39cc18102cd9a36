import { describe, expect, it } from 'vitest';
import { UNSIGNED } from '../../../src/agents/reasons.ts';
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
  ...HUMAN,
  class: 'unknown',
  score: 0.65,
  rules: [
    { id: 'T1', weight: 0.35, kind: 'T' },
    { id: 'T4', weight: 0.3, kind: 'T' },
  ],
  inconsistency: 2,
};
const TWO_MEDIUM: Classification = {
  ...HUMAN,
  class: 'undeclared_automation',
  score: 0.35,
  rules: [
    { id: 'M1', weight: 0.15, kind: 'M' },
    { id: 'M2', weight: 0.2, kind: 'M' },
  ],
};
const ORIGIN = 'https://agent.example';
const AGENT = { ...UNSIGNED, status: 'verified', agent: ORIGIN, named: ORIGIN } as const;

function verdict(over: Partial<DecideInput>): ReturnType<typeof decide> {
  return decide({
    requestId: 'req_1',
    now: NOW,
    identity: { durable: 'd', visitorId: 'v', epoch: 1 },
    known: KNOWN_DEVICE,
    classification: HUMAN,
    defenses: [],
    agent: UNSIGNED,
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
  it.each([
    [HUMAN, false],
    [TAMPERED, false],
    [TWO_MEDIUM, false],
    [AUTOMATION, true],
  ])(
    'if and only if Web Bot Auth verified, and a bot if and only if an A rule fired: $class',
    (classification, bot) => {
      expect(verdict({ classification }).class).toBe(classification.class);
      expect(verdict({ classification, agent: AGENT })).toMatchObject({
        class: 'declared_agent',
        declaredAgentId: AGENT.agent,
        signature: { status: 'verified', reason: null },
        suspectScore: classification.score,
        smartSignals: { bot },
      });
    },
  );

  it("stays what it is beside a reviewer's override of the device", () => {
    expect(verdict({ ...overridden, classification: AUTOMATION, agent: AGENT })).toMatchObject({
      class: 'declared_agent',
      overridden: false,
      suspectScore: 0.9,
      smartSignals: { bot: true },
    });
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
    const calm = verdict({ ...overridden, classification: { ...HUMAN, score: 0.06 } });
    expect(calm).toMatchObject({ class: 'human', overridden: false, suspectScore: 0.06 });
  });
});

describe('a privacy defense', () => {
  it('leaves at most 0.2 of suspicion and no mark of tampering, raises no score, and exempts no A rule', () => {
    const calmed = verdict({ classification: TAMPERED, defenses: ['firefox-rfp'] });
    expect(calmed).toMatchObject({ class: 'unknown', suspectScore: 0.2 });
    expect(calmed.smartSignals).toMatchObject({ tampered: false, inconsistency: 2 });
    const human = { ...HUMAN, score: 0.04 };
    expect(verdict({ classification: human, defenses: ['brave'] }).suspectScore).toBe(0.04);
    const driven = verdict({ classification: AUTOMATION, defenses: ['brave'] });
    expect(driven).toMatchObject({ suspectScore: 0.9, smartSignals: { bot: true } });
    expect(driven.class).toBe('undeclared_automation');
  });
});

describe('the verdict', () => {
  it.each([
    [HUMAN, { bot: false, tampered: false, inconsistency: 0 }],
    [TAMPERED, { bot: false, tampered: true, inconsistency: 2 }],
    [AUTOMATION, { bot: true, tampered: false, inconsistency: 0 }],
    [TWO_MEDIUM, { bot: true, tampered: false, inconsistency: 0 }],
  ])('has smartSignals of $class', (classification, expected) => {
    expect(verdict({ classification }).smartSignals).toEqual({ incognito: false, ...expected });
  });

  it.each([
    ['nobody', { identity: null, needsAttestation: true }, 0, false],
    ['a first sighting', {}, 0.6, false],
    ['a repeat', { known: { ...KNOWN_DEVICE, seen: true } }, 0.99, false],
    ['a shared id', { needsAttestation: true }, 0.6, true],
  ])('has a confidence in %s', (_name, over, confidence, needsAttestation) => {
    expect(verdict(over)).toMatchObject({ confidence, needsAttestation });
  });

  it('keeps what would have changed the class, and nothing where no strong rule fired', () => {
    expect(verdict({ classification: AUTOMATION }).counterfactual).toEqual(AUTOMATION.counterfactual);
    expect(verdict({ classification: HUMAN })).not.toHaveProperty('counterfactual');
  });

  it("of the operator's own monitor keeps its class and is no suspect", () => {
    const watched = verdict({ classification: AUTOMATION, monitor: true });
    expect(watched).toMatchObject({ class: 'undeclared_automation', suspectScore: 0.2, monitor: true });
  });
});

describe('the grant that the visit rode on', () => {
  const CONTRADICTED = { ...TAMPERED, class: 'undeclared_automation' } as const;
  it.each<readonly [string, string, Partial<DecideInput>, boolean]>([
    ['a rule of kind A', 'undeclared_automation', { classification: AUTOMATION }, true],
    ['a signature', 'declared_agent', { agent: AGENT }, true],
    ['a signature beside oddities', 'declared_agent', { classification: TWO_MEDIUM, agent: AGENT }, true],
    ['oddities that people have too', 'unknown', { classification: TWO_MEDIUM }, false],
    ['a contradiction and an oddity', 'unknown', { classification: CONTRADICTED }, false],
    ['a contradiction alone', 'unknown', { classification: TAMPERED }, false],
    ['a person', 'human', {}, false],
    ["a reviewer's override", 'human', { ...overridden, classification: AUTOMATION }, false],
  ])('from %s, %s: %s is doubted: %s', (_name, giver, over, isDoubted) => {
    const ridden = verdict({ ...over, grantSeq: 7 });
    expect(readGiver(ridden)).toBe(giver);
    expect(ridden.grantSeq).toBe(isDoubted ? 7 : undefined);
    expect(verdict(over)).not.toHaveProperty('grantSeq');
  });
});
