import { describe, expect, it } from 'vitest';
import { canonicalJson, type Json, JsonRefused, parseStrictJson } from '../../src/lib/json.ts';
import { fc } from '../support/property.ts';

const refused = (text: string, maxDepth?: number): string => {
  try {
    parseStrictJson(text, maxDepth);
  } catch (error) {
    if (error instanceof JsonRefused) return error.message;
    throw error;
  }
  return 'not refused';
};

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);

describe('parseStrictJson beside JSON.parse', () => {
  it('reads every JSON value as JSON.parse does, however it is spaced', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.integer({ min: 0, max: 4 }), (text, spaces) => {
        const spaced = JSON.stringify(JSON.parse(text), null, spaces);
        expect(parseStrictJson(text)).toEqual(JSON.parse(text));
        expect(parseStrictJson(spaced)).toEqual(JSON.parse(text));
      }),
    );
  });

  it('refuses what JSON.parse refuses, and nothing else comes out than from JSON.parse', () => {
    const words = ['"a"', '"b"', '\\"', '\\u0061', '1', 'null', ' ', '"\\\\"', '-0', 'é'];
    const shreds = fc.constantFrom(...'{}[],:"\\'.split(''), ...words);
    fc.assert(
      fc.property(fc.array(shreds, { maxLength: 14 }), (parts) => {
        const text = parts.join('');
        let strict: unknown;
        try {
          strict = parseStrictJson(text);
        } catch (error) {
          expect(error).toBeInstanceOf(JsonRefused);
          return;
        }
        expect(strict).toEqual(JSON.parse(text));
      }),
      { numRuns: 3000 },
    );
  });
});

describe('duplicate keys', () => {
  it.each([
    '{"a":1,"a":2}',
    '{"a":1,"b":{},"a":2}',
    '{"a":[1,{"b":2}],"a":1}',
    '{"a":1,"\\u0061":2}',
    '{"\\u00e9":1,"é":2}',
    '{"\\"":1,"\\u0022":2}',
    '{"":1,"":2}',
    '{"__proto__":1,"__proto__":2}',
    '{"toString":1,"toString":2}',
    '{ "a" : "}" , "a" : "{" }',
    '{"a\\\\":1,"a\\\\":2}',
  ])('are refused at the top: %s', (text) => {
    expect(refused(text)).toBe('duplicate key');
  });

  it.each([
    '{"a":"a","b":"a"}',
    '[1,"a","a"]',
    '{"x":["a","a"],"y":"x","z":"y"}',
    '[{"a":1},{"a":2}]',
    '{"a":1,"A":2}',
    '{"a":{"a":{"a":1}}}',
    '{"a":{"b":1,"b":2}}',
    '{"é":1,"e\\u0301":2}',
    '{"a\\\\":1,"a":2}',
    '{"a":",\\"a\\":"}',
  ])('are not seen where there are none: %s', (text) => {
    expect(parseStrictJson(text)).toEqual(JSON.parse(text));
  });

  it('keeps __proto__ an ordinary key', () => {
    const value = parseStrictJson('{"__proto__":{"polluted":true}}') as object;
    expect(Object.keys(value)).toEqual(['__proto__']);
    expect('polluted' in value).toBe(false);
  });
});

describe('depth', () => {
  it('takes 32 levels and refuses 33', () => {
    expect(parseStrictJson(nested(32))).toEqual(JSON.parse(nested(32)));
    expect(refused(nested(33))).toBe('nested too deeply');
  });

  it('counts arrays and objects alike, and not what lies in strings', () => {
    expect(refused('{"a":[{"b":[1]}]}', 3)).toBe('nested too deeply');
    expect(parseStrictJson('{"a":[{"b":1}]}', 3)).toEqual({ a: [{ b: 1 }] });
    expect(parseStrictJson(JSON.stringify({ a: nested(99) }))).toEqual({ a: nested(99) });
  });

  it('is judged before a parser could run out of stack', () => {
    expect(refused('['.repeat(1_000_000))).toBe('nested too deeply');
    expect(refused('{"a":'.repeat(1_000_000))).toBe('nested too deeply');
  });
});

describe('a refusal', () => {
  it('says nothing of the input', () => {
    for (const text of ['{"secret":}', 'secret', '{"secret":1,"secret":2}', '"secret', '{"sec\\xret":1}'])
      expect(refused(text)).not.toMatch(/secret|not refused/);
  });

  it.each([
    ...['', ' ', '{', '"', '"\\', '\\"', '{"a":1}x', '{"a":1}{"b":2}', "{'a':1}", '{"a":1,}', 'NaN', '01'],
    '\ufeff{}',
  ])('meets %j', (text) => {
    expect(refused(text)).not.toBe('not refused');
  });

  // Quadratic work on these lengths would outlast every limit of a test.
  it('comes to an end on a hostile text', () => {
    const slashes = `{"a":"${'\\\\'.repeat(200_000)}"}`;
    parseStrictJson(slashes);
    refused('"\\'.repeat(100_000));
  });
});

describe('canonicalJson (RFC 8785)', () => {
  it('gives the example of the RFC, section 3.2.3 and 3.2.4', () => {
    const value = JSON.parse(
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
    );
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
  });

  it('sorts keys by UTF-16 code units', () => {
    const keys = ['\u20ac', '\r', '\ufb33', '1', '\ud83d\ude00', '\u0080', '\u00f6'];
    const value = Object.fromEntries(keys.map((key) => [key, 1]));
    const order = ['\r', '1', '\u0080', '\u00f6', '\u20ac', '\ud83d\ude00', '\ufb33'];
    expect(Object.keys(JSON.parse(canonicalJson(value))).filter((key) => key !== '1')).toEqual(
      order.filter((key) => key !== '1'),
    );
  });

  it('is the same text for the same value, whatever the order of its keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const reversed = Object.fromEntries(Object.entries(value).reverse());
        expect(canonicalJson(reversed as Json)).toBe(canonicalJson(value as Json));
        expect(JSON.parse(canonicalJson(value as Json))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('throws at what is no JSON value', () => {
    for (const value of [undefined, Number.NaN, Number.POSITIVE_INFINITY, () => 1])
      expect(() => canonicalJson(value as unknown as Json)).toThrow();
  });
});
