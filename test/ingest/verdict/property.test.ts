import { describe, expect, it } from 'vitest';
import { announcedSeed } from '../../support/make.ts';
import { fc } from '../../support/property.ts';
import { type Browser, chrome, judge, put } from './support/browsers.ts';

/** Signals as nobody would send them: no throw, and never `human` by omission. */

const seed = Number(announcedSeed('classification')) % 2 ** 31;
const GROUPS = ['fonts', ...(Object.keys(put) as (keyof typeof put)[])] as const;
const NEEDED = ['screen', 'media', 'graphics'] as const;
const CLASSES = ['human', 'undeclared_automation', 'unknown'];

function send(signals: unknown, over: Partial<Browser> = {}): ReturnType<typeof judge> {
  return judge({ ...chrome(), signals: signals as Browser['signals'], ...over });
}

function expectSane(judged: ReturnType<typeof judge>): void {
  expect(CLASSES).toContain(judged.class);
  expect(judged.score).toBeGreaterThanOrEqual(0);
  expect(judged.score).toBeLessThanOrEqual(1);
  expect(new Set(judged.ids).size).toBe(judged.ids.length);
}

/** Values that a field of ours might hold, right or wrong. */
const leaf = fc.oneof(
  fc.constantFrom(
    ...[null, true, false, 0, 1, -1, 33, 37, 1e308],
    ...['', 'Win32', 'MacIntel', 'UTC', 'fine', 'none', 'Mozilla', 'SwiftShader', 'iPhone', 'Android'],
    ...['Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0', 'HeadlessChrome/141'],
  ),
  fc.string({ maxLength: 20 }),
  fc.double(),
  fc.array(fc.string({ maxLength: 5 }), { maxLength: 3 }),
  fc.constant({ brands: [], platform: 'Windows' }),
  fc.anything({ maxDepth: 2 }),
);
const names = Object.fromEntries(
  GROUPS.map((group) => [group, Object.keys((chrome().signals[group] ?? {}) as object)]),
) as Record<string, string[]>;
const group = (name: string): fc.Arbitrary<unknown> =>
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.dictionary(fc.constantFrom(...(names[name]?.length ? names[name] : ['x'])), leaf),
    },
    { weight: 1, arbitrary: leaf },
  );
const bundle = fc.record(Object.fromEntries(GROUPS.map((name) => [name, group(name)])), { requiredKeys: [] });
const headers = fc.dictionary(
  fc.constantFrom('user-agent', 'accept-language', 'sec-ch-ua', 'sec-ch-ua-platform', 'sec-fetch-site'),
  fc.string({ maxLength: 60 }),
);

describe('random signals', () => {
  it('never throw, whatever the headers', () => {
    fc.assert(
      fc.property(
        bundle,
        headers,
        fc.boolean(),
        fc.option(fc.string()),
        (signals, sentHeaders, https, ja4) => {
          expectSane(send(signals, { headers: sentHeaders, https, ja4 }));
        },
      ),
      { seed, numRuns: 800 },
    );
  });

  it('of a browser with anything in one field never throw, and wrong types are never human', () => {
    const place = fc.constantFrom(...GROUPS).chain((name) =>
      fc.record({
        name: fc.constant(name),
        field: fc.constantFrom(...(names[name]?.length ? names[name] : ['x'])),
      }),
    );
    fc.assert(
      fc.property(place, leaf, ({ name, field }, value) => {
        const browser = chrome();
        (browser.signals as Record<string, unknown>)[name] = {
          ...(browser.signals[name] as object),
          [field]: value,
        };
        const judged = judge(browser);
        expectSane(judged);
        if (judged.facts.incomplete) expect(judged.class).not.toBe('human');
      }),
      { seed, numRuns: 800 },
    );
  });
});

describe('an incomplete bundle', () => {
  it('is never human, whatever else it holds', () => {
    const without = fc
      .constantFrom(...NEEDED)
      .chain((name) => bundle.map((signals) => ({ ...signals, [name]: undefined })));
    fc.assert(
      fc.property(without, (signals) => {
        expect(send(signals).class).not.toBe('human');
      }),
      { seed, numRuns: 300 },
    );
  });

  it.each(NEEDED)('without %s is unknown, missing or null', (name) => {
    for (const nothing of [undefined, null]) {
      const browser = chrome();
      Object.assign(browser.signals, { [name]: nothing });
      expect(judge(browser)).toMatchObject({ class: 'unknown', strong: [] });
    }
  });
});

describe('a badly typed bundle', () => {
  it.each(GROUPS)('is unknown, never human: %s', (name) => {
    const wrongValues =
      name === 'fonts' ? ['XYZ', 5, [], 'g'] : ['x', 5, [], true, { [names[name]?.[0] ?? '']: { deep: 1 } }];
    for (const value of wrongValues) {
      const judged = send({ ...chrome().signals, [name]: value });
      expect(judged.class).toBe('unknown');
      expect(judged.facts.signals[name]).toBeNull();
    }
  });

  it('of inherited names is not read', () => {
    const judged = send(JSON.parse('{"__proto__":{"screen":{},"media":{},"graphics":{}},"constructor":1}'));
    expect(judged.class).toBe('unknown');
  });
});
