import { describe, expect, it } from 'vitest';
import {
  createUlid,
  decodeBase64,
  decodeBase64Url,
  equalBytes,
  hmacSha256,
  sha256,
  ulidTime,
} from '../../src/lib/crypto.ts';
import { fc } from '../support/property.ts';

describe('base64', () => {
  it('decodes what an encoder makes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (array) => {
        const bytes = Buffer.from(array);
        expect(decodeBase64(bytes.toString('base64'))).toEqual(bytes);
        expect(decodeBase64Url(bytes.toString('base64url'))).toEqual(bytes);
      }),
    );
  });

  it('takes one spelling of a value only', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'ABZabz019+/-_= \n'.split('')) }), (text) => {
        const bytes = decodeBase64(text);
        if (bytes !== null) expect(bytes.toString('base64')).toBe(text);
      }),
    );
  });

  it.each([
    ...['AA', 'AAAA=', '=', 'AA-_', 'AAAA AAAA', 'AAAA\n', 'AB==', 'AAB=', 'A', 'AA==AAAA', 'AAAA\u0000'],
    // Node's decoder takes the low byte of U+0141 for A.
    ...['ÄÄÄÄ', 'AAA\u0141', `${'A'.repeat(40)}\uff41${'A'.repeat(43)}`],
  ])('refuses %j', (text) => {
    expect(decodeBase64(text)).toBeNull();
  });

  it.each(['AA==', 'AA+/', 'AB', 'AAB', 'A', 'AA ', 'AA\n', '=', 'AAAA=', 'ÄÄ'])(
    'refuses %j in the alphabet for URLs',
    (text) => {
      expect(decodeBase64Url(text)).toBeNull();
    },
  );
});

describe('hashes', () => {
  it('gives the known answers of SHA-256 (FIPS 180-4, "abc") and HMAC (RFC 4231, case 2)', () => {
    expect(sha256('abc').toString('hex')).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
    expect(hmacSha256(Buffer.from('Jefe'), 'what do ya want for nothing?').toString('hex')).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    );
    expect(sha256('ü')).toEqual(sha256(Buffer.from('ü')));
  });

  it.each([
    ['ab', 'ab', true],
    ['ab', 'ac', false],
    ['ab', 'abc', false],
    ['', 'a', false],
  ])('equalBytes compares %j with %j', (a, b, equal) => {
    expect(equalBytes(Buffer.from(a), Buffer.from(b))).toBe(equal);
  });
});

describe('createUlid', () => {
  const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
  const MAX_TIME = 2 ** 48 - 1;
  const ulidOf = (time: number, bytes: Uint8Array): string =>
    createUlid(
      () => time,
      () => Buffer.from(bytes),
    );

  /** The ULID specification read backwards: 26 characters of Crockford base32 are 130 bits, the first two zero. */
  function decode(text: string): { time: number; random: string } {
    let bits = 0n;
    for (const character of text) bits = bits * 32n + BigInt(ALPHABET.indexOf(character));
    const random = (bits & ((1n << 80n) - 1n)).toString(16).padStart(20, '0');
    return { time: Number(bits >> 80n), random };
  }

  it('gives the known answers', () => {
    expect(ulidOf(0, Buffer.alloc(10))).toBe('00000000000000000000000000');
    expect(ulidOf(MAX_TIME, Buffer.alloc(10, 255))).toBe('7ZZZZZZZZZZZZZZZZZZZZZZZZZ');
    // The example of the specification, by its own time.
    expect(ulidOf(1_469_918_176_385, Buffer.alloc(10)).slice(0, 10)).toBe('01ARYZ6S41');
  });

  it('holds the time and all 80 random bits, so that it sorts by time as text', () => {
    const time = fc.integer({ min: 0, max: MAX_TIME });
    fc.assert(
      fc.property(time, time, fc.uint8Array({ minLength: 10, maxLength: 10 }), (at, later, bytes) => {
        const text = ulidOf(at, bytes);
        expect(text).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
        expect(ulidTime(text)).toBe(at);
        expect(decode(text)).toEqual({ time: at, random: Buffer.from(bytes).toString('hex') });
        if (at < later) expect(text < ulidOf(later, bytes)).toBe(true);
      }),
    );
  });
});
