import { describe, expect, it } from 'vitest';
import {
  applyPolicy,
  classify,
  DEFAULT_POLICY,
  POLICY_VERSION,
  RULES,
  unknownRules,
} from '../../../src/ingest/verdict/classify.ts';
import { tenantPolicySchema } from '../../../src/schema/policy.ts';
import { createFacts } from '../../support/make-signals.ts';

const policy = (over: object) => tenantPolicySchema.parse(over);

describe('a tenant’s policy', () => {
  it('is the default where it changes nothing', () => {
    expect(applyPolicy(policy({}))).toBe(DEFAULT_POLICY);
    expect(applyPolicy(policy({ monitors: { networks: ['10.0.0.0/8'] } }))).toBe(DEFAULT_POLICY);
    expect(DEFAULT_POLICY).toEqual({ version: POLICY_VERSION, rules: RULES });
  });

  it('changes weights and switches rules off', () => {
    const { rules } = applyPolicy(policy({ weights: { A1: 0.1 }, off: ['M7'] }));
    expect(rules).toHaveLength(RULES.length - 1);
    expect(rules.find(({ id }) => id === 'A1')).toEqual({ ...RULES[0], weight: 0.1 });
    expect(RULES[0]?.weight).toBe(0.9);
    const facts = createFacts({ page: { webdriver: true } });
    expect(classify(facts, rules)).toMatchObject({ class: 'undeclared_automation', score: 0.1 });
    expect(classify(facts, applyPolicy(policy({ off: ['A1'] })).rules).class).toBe('human');
  });

  it('says in its version by which weights a verdict came about', () => {
    const version = (over: object) => applyPolicy(policy(over)).version;
    expect(version({ weights: { A1: 0.1 } })).toMatch(
      new RegExp(`^${POLICY_VERSION.replaceAll('.', '\\.')}\\+[0-9a-f]{8}$`),
    );
    expect(version({ weights: { A1: 0.1, A2: 0.2 } })).toBe(version({ weights: { A2: 0.2, A1: 0.1 } }));
    expect(version({ off: ['M7', 'W6'] })).toBe(version({ off: ['W6', 'M7'] }));
    const versions = [{ off: ['M7'] }, { off: ['W6'] }, { weights: { M7: 0 } }, { weights: { M7: 0.1 } }].map(
      version,
    );
    expect(new Set(versions).size).toBe(versions.length);
  });

  it('names the rules that do not exist', () => {
    expect(unknownRules(policy({ weights: { A1: 0.1, A99: 0.1 }, off: ['M3', 'M7'] }))).toEqual([
      'A99',
      'M3',
    ]);
    expect(unknownRules(policy({}))).toEqual([]);
  });

  it.each([
    { weights: { A1: 1.1 } },
    { weights: { A1: -0.1 } },
    { weights: { x: 0.1 } },
    { off: ['all'] },
    { extra: 1 },
  ])('may not be %j', (value) => {
    expect(tenantPolicySchema.safeParse(value).success).toBe(false);
  });
});
