import { describe, expect, it } from 'vitest';
import { kidSchema, plaintextSchema, sealedBundleSchema } from '../../src/schema/bundle.ts';
import { createReceipt, makePlaintext } from '../support/make.ts';

const takes = (schema: { safeParse(value: unknown): { success: boolean } }, value: unknown): boolean =>
  schema.safeParse(value).success;

const bytes = (size: number): string => Buffer.alloc(size, 7).toString('base64');
const bundle = { kid: 'acme', iv: bytes(12), ct: bytes(40), epk: bytes(65) };

describe('a kid', () => {
  it.each(['a', 'acme', 'A.b_c-9', '-', '...', '.a', '..a', 'a.', '.-.', 'x'.repeat(64), '.'.repeat(64)])(
    'may be %s',
    (kid) => {
      expect(takes(kidSchema, kid)).toBe(true);
    },
  );

  it.each(['', '.', '..', 'a|b', 'a b', 'a/b', 'ä', 'a\n', 'x'.repeat(65), 1, null])(
    'may not be %j',
    (kid) => {
      expect(takes(kidSchema, kid)).toBe(false);
    },
  );
});

describe('SealedBundle', () => {
  it('has three fields, and epk in the asymmetric form', () => {
    expect(sealedBundleSchema.parse(bundle)).toEqual(bundle);
    const { ...symmetric } = bundle;
    expect(sealedBundleSchema.parse(symmetric)).toEqual(symmetric);
  });

  it.each<[string, Record<string, unknown>]>([
    ['an extra field', { extra: 1 }],
    ['no kid', { kid: undefined }],
    ['a kid with the delimiter', { kid: 'a|b' }],
    ['a number for a kid', { kid: 7 }],
    ['a kid that a path takes for a step', { kid: '..' }],
    ['no iv', { iv: undefined }],
    ['an iv of 9 bytes', { iv: bytes(9) }],
    ['an iv of 16 bytes', { iv: bytes(16) }],
    ['no ct', { ct: undefined }],
    ['an empty ct', { ct: '' }],
    ['a ct that no body could hold', { ct: 'A'.repeat(32_772) }],
    ['an empty epk', { epk: '' }],
    ['a null epk', { epk: null }],
    ['an epk of 33 bytes', { epk: bytes(33) }],
  ])('has not %s', (_what, change) => {
    const changed = Object.fromEntries(
      Object.entries({ ...bundle, ...change }).filter(([, value]) => value !== undefined),
    );
    expect(takes(sealedBundleSchema, changed)).toBe(false);
  });

  it.each([null, [], 'bundle', 7, [bundle]])('is not %j', (value) => {
    expect(takes(sealedBundleSchema, value)).toBe(false);
  });
});

describe('the plaintext', () => {
  const parse = (change: object): boolean => takes(plaintextSchema, { ...makePlaintext(), ...change });

  it('is the one of the contract', () => {
    expect(plaintextSchema.parse(makePlaintext())).toEqual(makePlaintext());
  });

  it('refuses an unknown field at the top, and takes any inside signals', () => {
    expect(parse({ extra: 1 })).toBe(false);
    expect(parse({ signals: { anything: { goes: [1, null] } } })).toBe(true);
    expect(parse({ signals: {} })).toBe(true);
  });

  it('needs every field', () => {
    for (const name of Object.keys(makePlaintext())) {
      const rest: Record<string, unknown> = { ...makePlaintext() };
      delete rest[name];
      expect(takes(plaintextSchema, rest), name).toBe(false);
    }
  });

  it.each<[string, object]>([
    ['another version', { v: 2 }],
    ['a version as text', { v: '1' }],
    ['a fractional time', { clientTs: 1.5 }],
    ['a negative time', { clientTs: -1 }],
    ['a time past the end of dates', { clientTs: 8_640_000_000_000_001 }],
    ['a time as text', { clientTs: '1763630000000' }],
    ['an endless time', { clientTs: Number.POSITIVE_INFINITY }],
    ['signals that are a list', { signals: [] }],
    ['signals that are null', { signals: null }],
    ['consent that is null', { consent: null }],
  ])('refuses %s', (_what, change) => {
    expect(parse(change)).toBe(false);
  });

  it('takes a nonce of 16 to 64 bytes in its one spelling', () => {
    const nonce = (size: number): string => Buffer.alloc(size, 0xfb).toString('base64url');
    for (const size of [16, 17, 32, 63, 64]) expect(parse({ nonce: nonce(size) }), `${size}`).toBe(true);
    for (const size of [0, 1, 15, 65, 128]) expect(parse({ nonce: nonce(size) }), `${size}`).toBe(false);
    const bad = [
      'AAECAwQFBgcICQoLDA0ODw==',
      'AAECAwQFBgcICQoLDA0OD/',
      'AAECAwQFBgcICQoLDA0ODx',
      `${nonce(16)} `,
      7,
    ];
    for (const text of bad) expect(parse({ nonce: text }), String(text)).toBe(false);
  });

  it('does not let __proto__ in signals reach a prototype', () => {
    const text = JSON.stringify(makePlaintext()).replace(
      '"signals":{',
      '"signals":{"__proto__":{"polluted":1},',
    );
    const parsed = plaintextSchema.parse(JSON.parse(text));
    expect('polluted' in parsed.signals).toBe(false);
    expect('polluted' in {}).toBe(false);
  });
});

describe('the consent receipt', () => {
  const parse = (change: object): boolean =>
    takes(plaintextSchema, makePlaintext({ consent: { ...createReceipt(), ...change } }));
  const hash = 'a'.repeat(64);

  it('may carry a proof and a principal', () => {
    expect(parse({ proof: { seq: 0, hash }, principalId: 'u-1' })).toBe(true);
  });

  it('may be empty-handed', () => {
    expect(parse({ purposes: [], version: 0, issuedAt: 0 })).toBe(true);
  });

  it.each<[string, object]>([
    ['gpc as a number', { gpc: 1 }],
    ['no purposes', { purposes: null }],
    ['purposes that are no list', { purposes: 'device-identification' }],
    ['a purpose that is no text', { purposes: [1] }],
    ['an empty purpose', { purposes: [''] }],
    ['a purpose of 65 characters', { purposes: ['p'.repeat(65)] }],
    ['more purposes than anybody has', { purposes: Array(101).fill('p') }],
    ['a fractional version', { version: 1.5 }],
    ['a version that no integer column holds', { version: 2_147_483_648 }],
    ['a negative time', { issuedAt: -1 }],
    ['a proof without a hash', { proof: { seq: 1 } }],
    ['an upper-case hash', { proof: { seq: 1, hash: 'A'.repeat(64) } }],
    ['a short hash', { proof: { seq: 1, hash: 'a'.repeat(63) } }],
    ['a negative seq', { proof: { seq: -1, hash } }],
    ['an empty principal', { principalId: '' }],
  ])('refuses %s', (_what, change) => {
    expect(parse(change)).toBe(false);
  });
});
