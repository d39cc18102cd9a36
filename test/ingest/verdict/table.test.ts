import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { POLICY_VERSION, RULES, ruleText } from '../../../src/ingest/verdict/classify.ts';

/** The table of rules as data, against signals.md section 2. */

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

  it('says each rule in words of its own that a person understands', () => {
    const texts = RULES.map(({ text }) => text);
    expect(new Set(texts).size).toBe(RULES.length);
    for (const text of texts) expect(text).toMatch(/^[A-Z].{15,120}\.$/);
    for (const { id, text } of RULES) expect(ruleText(id)).toBe(text);
  });

  it('still describes a rule that was removed', () => {
    expect(ruleText('A99')).toBe('Rule A99 of an earlier policy.');
  });

  it('has nothing about places, addresses or the identity of a person', () => {
    for (const { text } of RULES)
      expect(text).not.toMatch(/\b(?:IP|address|country|location|city|name of the person)\b/i);
  });
});

describe('docs/classification.md', () => {
  const page = readFileSync(new URL('../../../docs/classification.md', import.meta.url), 'utf8');
  const rows = new Map(
    [...page.matchAll(/^\| ([ATMWN]\d+) \| (.+?) \| ([\d.]+) \|/gm)].map(([, id, text, weight]) => [
      id,
      { text, weight: Number(weight) },
    ]),
  );

  it('has the row of every rule, in the same words and with the same weight', () => {
    expect(rows).toEqual(new Map(RULES.map(({ id, text, weight }) => [id, { text, weight }])));
  });

  it('names the policy version of the code', () => {
    expect(page).toContain(`\`${POLICY_VERSION}\``);
  });
});
