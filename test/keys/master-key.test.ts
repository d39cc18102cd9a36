import { describe, expect, it } from 'vitest';
import {
  createMasterKey,
  formatMasterKey,
  parseMasterKey,
  type WrapContext,
  WrongMasterKey,
} from '../../src/keys/master-key.ts';
import { seededRandom } from '../support/make.ts';
import { fc } from '../support/property.ts';

const random = seededRandom('test/keys/master-key');
const KEY = Buffer.from(Array.from({ length: 32 }, (_, i) => i));
const TEXT = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=';

const context: WrapContext = { table: 'seal_keys', tenant: 'acme', purpose: 'seal', generation: 3 };
const masterKey = createMasterKey(KEY, random);
const secret = Buffer.from('a secret of some length');
const wrapped = masterKey.wrap(secret, context);

describe('parseMasterKey', () => {
  it.each<[string, string | Buffer]>([
    ['32 raw bytes', KEY],
    ['base64', TEXT],
    ['base64 with a Windows line end', `${TEXT}\r\n`],
    ['base64 with white space around it', `  ${TEXT}\t\n\n`],
    ['its own format', formatMasterKey(KEY)],
  ])('takes %s', (_what, file) => {
    expect(parseMasterKey(Buffer.from(file as string))).toEqual(KEY);
  });

  it('takes raw bytes as they are, even where they look like text', () => {
    const raw = Buffer.from(`${'A'.repeat(31)}\n`);
    expect(parseMasterKey(raw)).toEqual(raw);
  });

  it.each<[string, string | Buffer]>([
    ['31 bytes', KEY.subarray(1)],
    ['hex', KEY.toString('hex')],
    ['base64url', Buffer.alloc(32, 0xfb).toString('base64url')],
    ['base64 without padding', TEXT.slice(0, -1)],
    ['base64 of 33 bytes', Buffer.alloc(33).toString('base64')],
    ['two keys', `${TEXT}\n${TEXT}\n`],
    ['a PEM file', '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n'],
  ])('takes %s for no key', (_what, file) => {
    expect(parseMasterKey(Buffer.from(file as string))).toBeNull();
  });

  it('gives bytes of its own', () => {
    const file = Buffer.from(KEY);
    const parsed = parseMasterKey(file);
    file.fill(0);
    expect(parsed).toEqual(KEY);
  });
});

describe('wrap and unwrap', () => {
  it('go round with any secret, under a fresh IV each time', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const [one, two] = [masterKey.wrap(bytes, context), masterKey.wrap(bytes, context)];
        expect(one).not.toBe(two);
        expect(masterKey.unwrap(one, context)).toEqual(Buffer.from(bytes));
      }),
    );
  });

  it('hide the secret, and need the same master key', () => {
    const other = createMasterKey(Buffer.alloc(32, 9), random);
    expect(Buffer.from(wrapped, 'base64').includes(secret)).toBe(false);
    expect(() => other.unwrap(wrapped, context)).toThrow(WrongMasterKey);
    expect(() => other.unwrap(wrapped, context)).toThrow(/^the master key does not open the stored secrets/);
  });

  it.each<[string, Partial<WrapContext>]>([
    ['table', { table: 'tenant_secrets' }],
    ['tenant', { tenant: 'acme2' }],
    ['purpose', { purpose: 'symmetric' }],
    ['generation', { generation: 4 }],
  ])('are bound to the %s', (_what, change) => {
    expect(() => masterKey.unwrap(wrapped, { ...context, ...change })).toThrow(WrongMasterKey);
  });

  it.each([
    [
      { table: 'a', tenant: 'bc' },
      { table: 'ab', tenant: 'c' },
    ],
    [
      { table: 'a","b', tenant: 'c' },
      { table: 'a', tenant: 'b","c' },
    ],
  ])('are bound to each part apart, not to their sum: %j', (mine, theirs) => {
    const rest = { purpose: '', generation: 1 };
    const one = masterKey.wrap(secret, { ...mine, ...rest });
    expect(() => masterKey.unwrap(one, { ...theirs, ...rest })).toThrow(WrongMasterKey);
  });

  it('find every changed bit', () => {
    const bytes = Buffer.from(wrapped, 'base64');
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      const text = flipped.toString('base64');
      expect(() => masterKey.unwrap(text, context), `bit ${bit}`).toThrow(WrongMasterKey);
    }
  });

  it('find what is cut short', () => {
    const bytes = Buffer.from(wrapped, 'base64');
    const cutShort = Array.from(bytes, (_, length) => bytes.subarray(0, length).toString('base64'));
    for (const text of [...cutShort, 'not base64', '💥'])
      expect(() => masterKey.unwrap(text, context)).toThrow(WrongMasterKey);
  });
});
