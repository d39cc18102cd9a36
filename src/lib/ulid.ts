import type { Clock } from './clock.ts';
import type { Random } from './random.ts';

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** Crockford base32 of the low `digits` × 5 bits of a non-negative safe integer. */
function base32(value: number, digits: number): string {
  let text = '';
  let rest = value;
  for (let i = 0; i < digits; i += 1) {
    text = ALPHABET.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

/** A ULID: 48 bits of milliseconds, 80 random bits; 26 characters that sort by time. */
export function makeUlid(clock: Clock, random: Random): string {
  const bytes = random(10);
  const high = bytes.readUIntBE(0, 5);
  const low = bytes.readUIntBE(5, 5);
  return base32(clock(), 10) + base32(high, 8) + base32(low, 8);
}
