import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { createCaseKey, hashCaseKey } from '../../../src/rights/contests/case-service.ts';

const SECRET = Buffer.alloc(32, 5);
const hash = (text: string): string => hashCaseKey(SECRET, text);

it('is 128 bits in Crockford base32, in groups of five', () => {
  expect(createCaseKey((size) => Buffer.alloc(size, 0xff))).toBe('7ZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-Z');
  expect(createCaseKey((size) => Buffer.alloc(size))).toBe('00000-00000-00000-00000-00000-0');
  const bytes = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex');
  expect(createCaseKey(() => bytes)).toBe('00041-06105-0R3GG-28A1C-60T3G-F');
  const keys = new Set(Array.from({ length: 200 }, () => createCaseKey(randomBytes)));
  expect(keys.size).toBe(200);
  for (const key of keys) expect(key).toMatch(/^([0-9A-HJKMNP-TV-Z]{5}-){5}[0-9A-HJKMNP-TV-Z]$/);
});

it.each([
  ['in lower case', '01ab0-1cdef-ghjkm-npqrs-tvwxy-z'],
  ['without hyphens', '01AB01CDEFGHJKMNPQRSTVWXYZ'],
  ['with spaces', ' 01AB0 1CDEF GHJKM NPQRS TVWXY Z\n'],
  ['with what looks alike', 'OIAB0-LCDEF-GHJKM-NPQRS-TVWXY-Z'],
  ['with other look-alikes', 'oiabo-lcdef-ghjkm-npqrs-tvwxy-z'],
])('is the same %s', (_how, text) => {
  expect(hash(text)).toBe(hash('01AB0-1CDEF-GHJKM-NPQRS-TVWXY-Z'));
});

it('differs by one character, by one too few or too many, and by the secret', () => {
  const key = '01AB0-1CDEF-GHJKM-NPQRS-TVWXY-Z';
  const otherHashes = [key.slice(0, -1), `${key}0`, `0${key}`, key.replace('Z', 'Y'), '', 'Ü'].map(hash);
  expect(new Set([hash(key), ...otherHashes, hashCaseKey(Buffer.alloc(32, 6), key)]).size).toBe(8);
});
