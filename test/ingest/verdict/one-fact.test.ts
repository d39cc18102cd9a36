import { describe, expect, it } from 'vitest';
import { RULES } from '../../../src/ingest/verdict/classify.ts';
import * as browsers from './support/browsers.ts';
import { type Browser, type Judged, judge } from './support/browsers.ts';
import { AUTOMATION_FIRES } from './support/fires-automation.ts';
import { DRIVEN_FIRES } from './support/fires-driven.ts';
import { MEDIUM_FIRES, PAIRED_FIRES, WEAK_FIRES } from './support/fires-medium.ts';
import { TAMPER_FIRES } from './support/fires-tamper.ts';

/** One fact never counts twice: over the whole table of rules, by what makes each of them fire. */

const BROWSERS: readonly (readonly [string, () => Browser])[] = [
  ['Chrome on Windows', browsers.chrome],
  ['Chrome on Linux', browsers.linuxChrome],
  ['Chrome on Android', browsers.androidChrome],
  ['Firefox', browsers.firefox],
  ['Firefox with resistFingerprinting', browsers.firefoxRfp],
  ['Safari', browsers.safari],
  ['an iPhone', browsers.iPhone],
  ['Brave', browsers.brave],
];

type Path = readonly string[];

function leavesOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path];
  return [path, ...Object.entries(value).flatMap(([name, inner]) => leavesOf(inner, [...path, name]))];
}

/** Whatever a field of any browser holds, and what drivers leave there. */
const EXTREMES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  1,
  9999,
  '',
  [],
  'none',
  'coarse',
  'landscape-primary',
  'portrait-primary',
  'UTC',
  'Win32',
  'MacIntel',
  'Linux x86_64',
  'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)',
  'llvmpipe (LLVM 19.1.7, 256 bits)',
];

const at = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((inner, name) => (inner as Record<string, unknown> | null)?.[name], value);

function put(root: object, path: Path, value: unknown): void {
  const holder = at(root, path.slice(0, -1));
  if (typeof holder === 'object' && holder !== null) Object.assign(holder, { [path.at(-1) ?? '']: value });
}

const samples = BROWSERS.map(([, make]) => make());

function* changesOf(make: () => Browser): Generator<readonly [string, Judged]> {
  const base = make();
  for (const path of leavesOf({ signals: base.signals, headers: base.headers }).filter(
    ({ length }) => length > 1,
  )) {
    const values = new Set([...EXTREMES, undefined, ...samples.map((sample) => at(sample, path))]);
    for (const value of values) {
      if (path[0] === 'headers' && value !== undefined && typeof value !== 'string') continue;
      const browser = make();
      put(browser, path, value);
      yield [`${path.join('.')} = ${JSON.stringify(value)}`, judge(browser)];
    }
  }
}

const isAccused = ({ class: className, rules }: Judged): boolean =>
  className === 'undeclared_automation' && rules.every(({ kind }) => kind !== 'A');

describe('one fact', () => {
  it.each(BROWSERS)('that changes in %s is never automation without a rule of kind A', (_name, make) => {
    const accused = [...changesOf(make)].filter(([, judged]) => isAccused(judged));
    expect(accused.map(([change, { strong }]) => `${change}: ${strong.join(' ')}`)).toEqual([]);
  });

  it('counts in one rule alone, the heaviest of those that fire', () => {
    const factOf = new Map(RULES.map(({ id, fact }) => [id, fact ?? id]));
    const shown = [
      ...AUTOMATION_FIRES,
      ...DRIVEN_FIRES,
      ...TAMPER_FIRES,
      ...MEDIUM_FIRES,
      ...PAIRED_FIRES,
      ...WEAK_FIRES,
    ];
    for (const [id, name, ...rest] of shown) {
      const [make, change] = rest.length === 2 ? rest : [browsers.chrome, rest[0]];
      const browser = make();
      change(browser);
      const counted = judge(browser).rules.filter(({ weight }) => weight > 0);
      const facts = counted.map((rule) => factOf.get(rule.id));
      expect(facts, `${id}: ${name}`).toHaveLength(new Set(facts).size);
    }
  });
});
