import { describe, expect, it } from 'vitest';
import { equalBytes, hmacSha256, sha256 } from '../../src/lib/crypto.ts';

describe('hashes', () => {
  it('gives the known answer of SHA-256 (FIPS 180-4, "abc")', () => {
    expect(sha256('abc').toString('hex')).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
  });

  it('gives the known answer of HMAC-SHA-256 (RFC 4231, case 2)', () => {
    expect(hmacSha256(Buffer.from('Jefe'), 'what do ya want for nothing?').toString('hex')).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    );
  });

  it('reads a string as UTF-8', () => {
    expect(sha256('ü')).toEqual(sha256(Buffer.from('ü')));
  });
});

describe('equalBytes', () => {
  it.each([
    ['', '', true],
    ['ab', 'ab', true],
    ['ab', 'ac', false],
    ['ab', 'abc', false],
    ['', 'a', false],
  ])('compares %j with %j', (a, b, equal) => {
    expect(equalBytes(Buffer.from(a), Buffer.from(b))).toBe(equal);
  });
});
