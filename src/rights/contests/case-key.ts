import { hmacSha256Text } from '../../lib/hash.ts';
import { ALPHABET, type Random } from '../../lib/random.ts';

/** The key of a case that was filed without an account: anyone who has it reads the case and answers (contract-2 section 15). */

const KEY_BYTES = 16;
const CHARACTERS = 26;
const GROUP = /.{5}(?=.)/g;

/** 128 bits as `XXXXX-` × 5 and `X`. */
export function makeCaseKey(random: Random): string {
  const digits = BigInt(`0x${random(KEY_BYTES).toString('hex')}`).toString(32);
  const text = Array.from(digits, (digit) => ALPHABET.charAt(Number.parseInt(digit, 32))).join('');
  return text.padStart(CHARACTERS, '0').replace(GROUP, '$&-');
}

/** Case, hyphens and spaces do not matter; Crockford reads O as 0, I and L as 1. */
const canonical = (text: string): string =>
  text.replace(/[-\s]/g, '').toUpperCase().replaceAll('O', '0').replace(/[IL]/g, '1');

/** What a row holds. Every text has a hash, so that a misspelt key costs the same look-up as a wrong one. */
export function hashCaseKey(serverSecret: Uint8Array, text: string): string {
  return hmacSha256Text(serverSecret, `gpd/case-key/v1|${canonical(text)}`);
}
