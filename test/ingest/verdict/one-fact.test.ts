import { describe, expect, it } from 'vitest';
import { applyPolicy, classify, RULES } from '../../../src/ingest/verdict/classify.ts';
import {
  androidChrome,
  type Browser,
  brave,
  type Change,
  changed,
  chrome,
  firefox,
  firefoxRfp,
  iPhone,
  type Judged,
  judge,
  LLVMPIPE,
  linuxChrome,
  NO_POINTER,
  OUTGROWN,
  put,
  SWIFTSHADER,
  safari,
} from './support/browsers.ts';
import { ALONE, PAIRED, type Shown } from './support/fires.ts';

/** Rules that rest on the same field either state one fact, which is scored once, or say here why they do not. */

const CASES: readonly Shown[] = [...ALONE, ...PAIRED];

type Tree = Record<string, unknown>;

/** Paths of all values of a browser, lists and the entries of lists as one value. */
function pathsOf(tree: Tree, prefix: readonly string[] = []): readonly (readonly string[])[] {
  return Object.entries(tree).flatMap(([name, value]) => {
    const path = [...prefix, name];
    const isTree = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isTree ? pathsOf(value as Tree, path) : [path];
  });
}

function valueAt(tree: Tree, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, name) => (at as Tree | null | undefined)?.[name], tree);
}

/** Copies only what leads to the value, because it is done some ten thousand times. */
function withValue<T extends object>(tree: T, [name = '', ...rest]: readonly string[], value: unknown): T {
  const inner = (tree as Tree)[name];
  return { ...tree, [name]: rest.length === 0 ? value : withValue(inner as Tree, rest, value) };
}

const fires = (browser: Browser, id: string): boolean => {
  const { facts } = judge(browser);
  return RULES.find((rule) => rule.id === id)?.fires(facts) ?? false;
};

/** A rule rests on a field when it no longer fires with the field missing, or as it was before the change. */
function restsOn([id, , make, change]: Shown): string[] {
  const before = make() as unknown as Tree;
  const browser = make();
  change(browser);
  if (!fires(browser, id)) throw new Error(`${id} does not fire`);
  return pathsOf(browser as unknown as Tree)
    .filter((path) =>
      [path[0] === 'headers' ? undefined : null, valueAt(before, path)].some(
        (value) => !fires(withValue(browser, path, value), id),
      ),
    )
    .map((path) => path.slice(1).join('.') || (path[0] ?? ''));
}

function rulesByField(): Map<string, Set<string>> {
  const rules = new Map<string, Set<string>>();
  for (const shown of CASES)
    for (const field of restsOn(shown)) {
      const ruleIds = rules.get(field) ?? new Set();
      rules.set(field, ruleIds.add(shown[0]));
    }
  return rules;
}

const RULES_BY_FIELD = rulesByField();

const factOf = (id: string): string => RULES.find((rule) => rule.id === id)?.fact ?? id;

/** Several facts rest on each of these fields; the reasons say why each rule counts. */
const INDEPENDENT: readonly { readonly fields: string; readonly rules: string; readonly why: string }[] = [
  {
    fields: 'page.userAgent worker.userAgent page.platform page.uaData.platform',
    rules: 'A2 M11 T1 T2 T3 T4 T9',
    why: 'each T holds the name against another value, and T with T is no automation; A2 reads a word in it; M11 exempts by it',
  },
  {
    fields: 'user-agent sec-ch-ua',
    rules: 'A2 A4 M8 N2 T9',
    why: 'M8 and N2 miss different headers and look here for which browser should send them; A2 and A4 read words',
  },
  {
    fields: 'page.uaData.brands page.uaData.fullVersionList worker.uaData.brands',
    rules: 'A2 A4 A5 A7 M11 T5 T10',
    why: 'a word, an old spelling, a list that the worker lacks, two lists that differ, or no long list: never the same; M11 exempts by it',
  },
  {
    fields:
      'screen.width screen.height screen.innerWidth screen.innerHeight screen.outerWidth screen.outerHeight',
    rules: 'A7 M1 M11 T13 T15 W1 W2 W3',
    why: 'A7 and M11 are about brands or a debugger and tell by the sizes who set them up; W1, W2 and W3 only move the score',
  },
  {
    fields: 'graphics.renderer graphics.vendor',
    rules: 'M7 M9 T6 T11 W5 W8',
    why: 'M9 is scored as the missing pointer; T6 and T11 hold the chip against the worker and the system',
  },
  {
    fields: 'media.pointer',
    rules: 'M5 M9 M11',
    why: 'M11 asks for a finger, the others for no pointer at all',
  },
  {
    fields: 'accept-language',
    rules: 'M8 N3',
    why: 'M8 fires without the header, N3 only with it',
  },
];

const shared = [...RULES_BY_FIELD].filter(([, ids]) => new Set([...ids].map(factOf)).size > 1);
const reasonFor = (field: string): (typeof INDEPENDENT)[number] | undefined =>
  INDEPENDENT.find(({ fields }) => fields.split(' ').includes(field));

describe('rules that rest on one field', () => {
  it('are found: the test sees every rule, and what it rests on', () => {
    expect(new Set(CASES.map(([id]) => id))).toEqual(new Set(RULES.map(({ id }) => id)));
    expect([...(RULES_BY_FIELD.get('media.pointer') ?? [])]).toEqual(['M5', 'M9', 'M11']);
  });

  it.each(shared)('%s: state one fact, or say why they do not', (field, ids) => {
    const reason = reasonFor(field)?.rules.split(' ') ?? [];
    expect([...ids].filter((id) => !reason.includes(id))).toEqual([]);
  });

  it('are each named for a reason that still holds', () => {
    for (const { fields, rules } of INDEPENDENT) {
      const found = shared.filter(([field]) => fields.split(' ').includes(field));
      expect(found.map(([field]) => field).sort()).toEqual(fields.split(' ').sort());
      expect(new Set(found.flatMap(([, ids]) => [...ids]))).toEqual(new Set(rules.split(' ')));
    }
  });
});

describe('a fact', () => {
  it('is stated by these rules, of which one counts', () => {
    const facts: Record<string, string[]> = {};
    for (const { id, fact } of RULES) if (fact) facts[fact] = [...(facts[fact] ?? []), id];
    expect(facts).toEqual({
      debugger: ['M2', 'M11'],
      'worker-brands': ['A5', 'A7'],
      'screen-size': ['T15', 'T13', 'M1'],
      'no-pointer': ['M5', 'M9'],
      'no-graphics-hardware': ['M7', 'W5', 'W8'],
    });
  });

  const recorded = (...changes: readonly Change[]): (readonly [string, string, number])[] =>
    changed(chrome, ...changes).rules.map(({ id, kind, weight }) => [id, kind, weight]);

  it('is scored once; a lesser rule is on record with no weight', () => {
    const judged = changed(chrome, NO_POINTER, LLVMPIPE);
    expect(judged.rules.map(({ id, weight }) => [id, weight])).toEqual([
      ['M5', 0.15],
      ['M9', 0],
      ['W5', 0.02],
    ]);
    expect(judged).toMatchObject({ class: 'unknown', score: 0.17, inconsistency: 0 });
  });

  it('counts by its heavier kind, and two facts are two', () => {
    expect(recorded(OUTGROWN)).toEqual([
      ['T13', 'T', 0.3],
      ['M1', 'W', 0],
    ]);
    expect(recorded(SWIFTSHADER)).toEqual([
      ['M7', 'M', 0.1],
      ['W5', 'W', 0],
    ]);
    expect(recorded(NO_POINTER, put.tells({ notificationMismatch: true }))).toEqual([
      ['M4', 'M', 0.15],
      ['M5', 'M', 0.15],
    ]);
  });

  it('has no other class by other weights', () => {
    const weights = { M1: 1, M9: 1, W5: 1, T13: 0, M5: 0, M7: 0 };
    const { rules } = applyPolicy({ weights, off: [], monitors: { agents: [], networks: [] } });
    for (const [, , make, change] of CASES) {
      const { facts, class: byTable } = changed(make, change);
      expect(classify(facts, rules).class).toBe(byTable);
    }
  });

  it('is stated by the other rule where a tenant switched one off', () => {
    const { facts } = changed(chrome, NO_POINTER, LLVMPIPE);
    const { rules } = applyPolicy({ weights: {}, off: ['M5'], monitors: { agents: [], networks: [] } });
    expect(classify(facts, rules).rules).toContainEqual({ id: 'M9', weight: 0.15, kind: 'M' });
  });

  it('counts in one rule alone, the heaviest of those that fire', () => {
    for (const [id, name, make, change] of CASES) {
      const counted = changed(make, change).rules.filter(({ weight }) => weight > 0);
      const facts = counted.map((rule) => factOf(rule.id));
      expect(facts, `${id}: ${name}`).toHaveLength(new Set(facts).size);
    }
  });
});

/** Whatever a field of any browser holds, and what drivers leave there. */
const EXTREMES: readonly unknown[] = [
  ...[null, true, false, 0, 1, 9999, [], undefined],
  ...[
    '',
    'none',
    'coarse',
    'landscape-primary',
    'portrait-primary',
    'UTC',
    'Win32',
    'MacIntel',
    'Linux x86_64',
  ],
  ...['ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero))', 'llvmpipe (LLVM 19.1.7, 256 bits)'],
];

const MAKERS = { chrome, linuxChrome, androidChrome, firefox, firefoxRfp, safari, iPhone, brave };
const samples = Object.values(MAKERS).map((make) => make());

/** Paths of all values of a browser and of the groups that hold them. */
function placesOf(browser: Browser): readonly (readonly string[])[] {
  const leaves = pathsOf({ signals: browser.signals, headers: browser.headers });
  const all = leaves.flatMap((path) => path.slice(1).map((_part, i) => path.slice(0, i + 2)));
  return [...new Map(all.map((path) => [path.join('.'), path])).values()];
}

function* changesOf(make: () => Browser): Generator<readonly [string, Judged]> {
  for (const path of placesOf(make())) {
    const values = new Set([
      ...EXTREMES,
      ...samples.map((sample) => valueAt(sample as unknown as Tree, path)),
    ]);
    for (const value of values) {
      if (path[0] === 'headers' && value !== undefined && typeof value !== 'string') continue;
      yield [`${path.join('.')} = ${JSON.stringify(value)}`, judge(withValue(make(), path, value))];
    }
  }
}

describe('one fact', () => {
  it.each(Object.entries(MAKERS))(
    'that changes in %s is never automation without a rule of kind A',
    (_name, make) => {
      const accused = [...changesOf(make)].filter(
        ([, judged]) =>
          judged.class === 'undeclared_automation' && judged.rules.every(({ kind }) => kind !== 'A'),
      );
      expect(accused.map(([change, { strong }]) => `${change}: ${strong.join(' ')}`)).toEqual([]);
    },
  );
});
