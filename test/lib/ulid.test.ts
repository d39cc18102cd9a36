import { describe, expect, it } from 'vitest';
import { createUlid, ulidTime } from '../../src/lib/crypto.ts';
import { seededRandom } from '../support/make.ts';
import { fc } from '../support/property.ts';

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const MAX_TIME = 2 ** 48 - 1;

/** The ULID specification read backwards: 26 characters of Crockford base32 are 130 bits, the first two zero. */
function decode(text: string): { time: number; random: string } {
  let bits = 0n;
  for (const character of text) bits = bits * 32n + BigInt(ALPHABET.indexOf(character));
  return { time: Number(bits >> 80n), random: (bits & ((1n << 80n) - 1n)).toString(16).padStart(20, '0') };
}

describe('createUlid', () => {
  it('gives the known answers', () => {
    expect(
      createUlid(
        () => 0,
        (size) => Buffer.alloc(size),
      ),
    ).toBe('00000000000000000000000000');
    expect(
      createUlid(
        () => MAX_TIME,
        (size) => Buffer.alloc(size, 255),
      ),
    ).toBe('7ZZZZZZZZZZZZZZZZZZZZZZZZZ');
    // The example of the specification, by its own time.
    expect(
      createUlid(
        () => 1_469_918_176_385,
        (size) => Buffer.alloc(size),
      ).slice(0, 10),
    ).toBe('01ARYZ6S41');
  });

  it('holds the time and all 80 random bits', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: MAX_TIME }),
        fc.uint8Array({ minLength: 10, maxLength: 10 }),
        (time, bytes) => {
          const text = createUlid(
            () => time,
            () => Buffer.from(bytes),
          );
          expect(text).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
          expect(ulidTime(text)).toBe(time);
          expect(decode(text)).toEqual({ time, random: Buffer.from(bytes).toString('hex') });
        },
      ),
    );
  });

  it('sorts by time as text', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 0, max: MAX_TIME }), { minLength: 2, maxLength: 20 }),
        (times) => {
          const random = seededRandom('ulid');
          const ids = times.map((time) => createUlid(() => time, random));
          const byTime = [...ids].sort((a, b) => decode(a).time - decode(b).time);
          expect([...ids].sort()).toEqual(byTime);
        },
      ),
    );
  });
});
