import type { Clock } from './clock.ts';

/** A source of `size` unpredictable bytes; `node:crypto.randomBytes` in production, a seeded one in tests. */
export type Random = (size: number) => Buffer;

const POOL_BYTES = 4096;

/**
 * Draws from the system in larger pieces and hands every byte out once. For nonces, ids and salts; a long-lived key is
 * drawn separately.
 */
export function poolRandom(random: Random): Random {
  let pool: Buffer = Buffer.alloc(0);
  let at = 0;
  return (size) => {
    if (size > POOL_BYTES) return random(size);
    if (at + size > pool.length) {
      pool = random(POOL_BYTES);
      at = 0;
    }
    at += size;
    return pool.subarray(at - size, at);
  };
}

/** Crockford base32. */
export const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

const PAIRS = Array.from({ length: 1024 }, (_, i) => ALPHABET.charAt(i >> 5) + ALPHABET.charAt(i & 31));

/** Crockford base32 of the low `digits` × 5 bits of a non-negative safe integer. */
function base32(value: number, digits: 8 | 10): string {
  let text = '';
  let rest = value;
  for (let i = 0; i < digits; i += 2) {
    text = (PAIRS[rest % 1024] as string) + text;
    rest = Math.floor(rest / 1024);
  }
  return text;
}

/** The milliseconds that {@link makeUlid} put into it. */
export function ulidTime(ulid: string): number {
  let ms = 0;
  for (const digit of ulid.slice(0, 10)) ms = ms * 32 + ALPHABET.indexOf(digit);
  return ms;
}

/** A ULID: 48 bits of milliseconds, 80 random bits; 26 characters that sort by time. */
export function makeUlid(clock: Clock, random: Random): string {
  const bytes = random(10);
  const high = bytes.readUIntBE(0, 5);
  const low = bytes.readUIntBE(5, 5);
  return base32(clock(), 10) + base32(high, 8) + base32(low, 8);
}
