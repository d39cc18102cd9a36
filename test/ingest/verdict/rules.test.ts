import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  applyPolicy,
  classify,
  DEFAULT_POLICY,
  POLICY_VERSION,
  RULES,
  unknownRules,
} from '../../../src/ingest/verdict/classify.ts';
import { ruleText } from '../../../src/ingest/verdict/verdict-words.ts';
import { tenantPolicySchema } from '../../../src/schema/policy.ts';
import { createFacts } from '../../support/make-signals.ts';
import {
  all,
  brave,
  type Change,
  changed,
  chrome,
  DEVTOOLS,
  firefoxRfp,
  header,
  named,
  nothing,
  patched,
  put,
} from './support/browsers.ts';
import { ALONE, PAIRED } from './support/fires.ts';

/** The table of rules: its rows against signals.md section 2, what each rule fires on, and what a tenant may change of it. */

const SPEC = `
A1 A .9   A2 A .9   A3 A .8   A4 A .7   A5 A .6   A6 A .6
T1 T .35  T2 T .3   T3 T .35  T4 T .3   T5 T .35  T6 T .3
T7 T .4   T8 T .25  T9 T .3   T10 T .2  T11 T .3  T12 T .2
N1 T .4   N2 M .25  N3 W .1
M1 M .15  M2 M .2   M4 M .15  M5 M .15  M6 M .1   M7 M .1   M8 M .15
W1 W .02  W2 W .02  W3 W .02  W4 W .02  W5 W .02  W6 W .02  W8 W .02  W9 W .02
A7 A .6  T13 T .3  M9 M .15  M10 M .15  M11 M .2
A8 A .8  A9 A .8  T14 T .3  T15 T .3  M12 M .15
N4 W .02`
  .trim()
  .split(/\s{2,}|\n/)
  .map((row) => row.split(' '));

describe('the table of rules', () => {
  it('holds every rule with its kind and its weight, and each once', () => {
    const rows = RULES.map(({ id, kind, weight }) => [id, kind, String(weight).replace(/^0/, '')]);
    expect(new Map(rows.map((row) => [row[0], row]))).toEqual(new Map(SPEC.map((row) => [row[0], row])));
    expect(rows).toHaveLength(SPEC.length);
  });

  it('says each rule in words of its own, and nothing about places, addresses or who somebody is', () => {
    expect(new Set(RULES.map(({ text }) => text)).size).toBe(RULES.length);
    for (const { id, text } of RULES) {
      expect(text).toMatch(/^[A-Z].{15,120}\.$/);
      expect(text).not.toMatch(/\b(?:IP|address|country|location|city|name of the person)\b/i);
      expect(ruleText(id)).toBe(text);
    }
    expect(ruleText('A99')).toBe('Rule A99 of an earlier policy.');
  });

  it('is that of docs/classification.md, in the same words, with its version', () => {
    const page = readFileSync(new URL('../../../docs/classification.md', import.meta.url), 'utf8');
    const rows = [...page.matchAll(/^\| ([ATMWN]\d+) \| (.+?) \| ([\d.]+) \|/gm)].map(
      ([, id, text, weight]) => [id, { text, weight: Number(weight) }] as const,
    );
    expect(new Map(rows)).toEqual(new Map(RULES.map(({ id, text, weight }) => [id, { text, weight }])));
    expect(page).toContain(`\`${POLICY_VERSION}\``);
  });
});

describe('a rule fires', () => {
  const kindOf = (id: string): string => RULES.find((rule) => rule.id === id)?.kind ?? '';

  /** A is automation alone, T a contradiction, M unknown alone; W leaves a person human. */
  it.each(ALONE)('%s: %s', (id, _name, make, change) => {
    const judged = changed(make, change);
    const kind = kindOf(id);
    expect(judged.ids).toContain(id);
    expect(judged.automation).toBe(kind === 'A');
    expect(judged.inconsistency).toBe(judged.rules.filter((rule) => rule.kind === 'T').length);
    if (kind === 'A') {
      expect(judged.class).toBe('undeclared_automation');
      expect(judged.score).toBeGreaterThanOrEqual(0.6);
    }
    if (kind === 'T') expect(judged.class).not.toBe('human');
    if (/^T(3|5|6|8|10|12|14|15)$|^N1$/.test(id) || kind === 'M')
      expect(judged).toMatchObject({
        class: 'unknown',
        strong: [id],
        inconsistency: kind === 'T' ? 1 : 0,
      });
    if (kind === 'W') {
      expect(judged).toMatchObject({ class: 'human', strong: [] });
      expect(judged.score).toBeGreaterThan(0);
      expect(judged.score).toBeLessThanOrEqual(0.1);
    }
  });

  it.each(PAIRED)('%s beside another: %s', (id, _name, make, change) => {
    const judged = changed(make, change);
    expect(judged.ids).toContain(id);
    expect(judged).toMatchObject({ inconsistency: 0, automation: false });
  });

  it('M10 beside M2 is automation: the worker answers for itself, as it never does under developer tools', () => {
    const judged = changed(chrome, put.tells({ cdp: true, debugsPageAlone: true }));
    expect(judged).toMatchObject({ class: 'undeclared_automation', strong: ['M2', 'M10'] });
    expect(changed(chrome, DEVTOOLS)).toMatchObject({ class: 'unknown', strong: ['M2'] });
  });

  it('W9 for an application by its name alone', () => {
    const slack = 'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Slack/4.4 Chrome/141.0.0.0 Electron/38.0';
    expect(changed(chrome, named(slack, 'Win32'))).toMatchObject({ class: 'human', ids: ['W9'] });
  });

  it.each(Object.entries({ firefoxRfp, brave }))('of kind A under a privacy defense: %s', (_name, make) => {
    for (const [id, , , change] of ALONE.filter(([rule]) => ['A1', 'A3', 'A6'].includes(rule))) {
      const judged = changed(make, change);
      expect(judged.facts.defenses).toHaveLength(1);
      expect(judged.ids).toContain(id);
      expect(judged.class).toBe('undeclared_automation');
    }
  });
});

describe('a rule is demoted', () => {
  const A5 = put.worker({ uaData: { brands: [], platform: 'Windows' } });
  const A6 = put.frame({ srcdocPreattached: true });
  const M2 = put.tells({ cdp: true });
  const T8 = patched('userAgent');
  const T3 = header('sec-ch-ua-platform', '"Linux"');

  it.each([M2, put.worker({ cdp: true })])(
    'A5 beside M2, the device mode of developer tools: unknown',
    (tools) => {
      const judged = changed(chrome, A5, tools);
      expect(judged.ids).toEqual(expect.arrayContaining(['A5', 'M2']));
      expect(judged).toMatchObject({ class: 'unknown', automation: false, inconsistency: 0 });
      expect(judged.score).toBeCloseTo(0.3);
    },
  );

  it('A6 with only T8 beside it, as script-blocking extensions have it: T, whatever weak rules fire', () => {
    const judged = changed(chrome, A6, T8, put.time({ zone: 'UTC' }));
    expect(judged).toMatchObject({ class: 'unknown', automation: false });
    expect(judged.rules.find(({ id }) => id === 'A6')?.kind).toBe('T');
  });

  it.each<readonly [string, Change]>([
    ['A5 and M2 beside A1', all(A5, M2, put.page({ webdriver: true }))],
    ['A5 and M2 beside another M', all(A5, M2, put.page({ chromeObject: false }))],
    [
      'A5 and M2 beside a T that no tools and no add-on explain',
      all(A5, M2, put.worker({ renderer: 'another' })),
    ],
    ['A6 beside nothing', all(A6, nothing)],
    ['A6 beside T8 of read-outs only', all(A6, patched('canvas', 'audio'))],
    ['A6 beside T8 and M2', all(A6, T8, M2)],
    ['A6 beside T8 and another T', all(A6, T8, header('user-agent', 'Mozilla/5.0 Chrome/140.0.0.0'))],
    ['A6 beside another T alone', all(A6, T3)],
  ])('but not %s', (_name, change) => {
    expect(changed(chrome, change).class).toBe('undeclared_automation');
  });
});

describe('a tenant’s policy', () => {
  const policy = (over: object) => tenantPolicySchema.parse(over);
  const apply = (over: object) => applyPolicy(policy(over));

  it('is the default where it changes nothing', () => {
    expect(apply({})).toBe(DEFAULT_POLICY);
    expect(apply({ monitors: { networks: ['10.0.0.0/8'] } })).toBe(DEFAULT_POLICY);
    expect(DEFAULT_POLICY).toEqual({ version: POLICY_VERSION, rules: RULES });
  });

  it('changes weights and switches rules off', () => {
    const { rules } = apply({ weights: { A1: 0.1 }, off: ['M7'] });
    expect(rules).toHaveLength(RULES.length - 1);
    expect(rules.find(({ id }) => id === 'A1')).toEqual({ ...RULES[0], weight: 0.1 });
    expect(RULES[0]?.weight).toBe(0.9);
    const facts = createFacts({ page: { webdriver: true } });
    expect(classify(facts, rules)).toMatchObject({ class: 'undeclared_automation', score: 0.1 });
    expect(classify(facts, apply({ off: ['A1'] }).rules).class).toBe('human');
  });

  it('says in its version by which weights a verdict came about', () => {
    const version = (over: object) => apply(over).version;
    expect(version({ weights: { A1: 0.1 } })).toMatch(
      new RegExp(`^${POLICY_VERSION.replaceAll('.', '\\.')}\\+[0-9a-f]{8}$`),
    );
    expect(version({ weights: { A1: 0.1, A2: 0.2 } })).toBe(version({ weights: { A2: 0.2, A1: 0.1 } }));
    expect(version({ off: ['M7', 'W6'] })).toBe(version({ off: ['W6', 'M7'] }));
    const changes = [{ off: ['M7'] }, { off: ['W6'] }, { weights: { M7: 0 } }, { weights: { M7: 0.1 } }];
    expect(new Set(changes.map(version)).size).toBe(changes.length);
  });

  it('names the rules that do not exist', () => {
    const unknown = policy({ weights: { A1: 0.1, A99: 0.1 }, off: ['M3', 'M7'] });
    expect(unknownRules(unknown)).toEqual(['A99', 'M3']);
    expect(unknownRules(policy({}))).toEqual([]);
  });

  it.each([{ weights: { A1: 1.1 } }, { weights: { A1: -0.1 } }, { weights: { x: 0.1 } }, { off: ['all'] }])(
    'may not be %j',
    (value) => {
      expect(tenantPolicySchema.safeParse(value).success).toBe(false);
    },
  );
});
