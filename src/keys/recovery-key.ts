import { sha256 } from '../lib/hash.ts';

/**
 * gpd-recovery/1: a master key on paper. 14 groups of five characters of Crockford's base 32: 13 groups carry 20 bits each
 * (256 of the key, 4 of zero), the last 20 bits of a hash of the key. The fifth character of a group is a check over
 * GF(32) of the four before it and of the group's number, so that one wrong character, two that changed places and two
 * groups that did are found where they are.
 */

const KEY_BYTES = 32;
const DATA_GROUPS = 13;
const GROUPS = DATA_GROUPS + 1;
const GROUP_CHARS = 5;
const HASH_BITS = 20;
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** What a reader takes for another character; the alphabet has none of them. */
const MISREAD: Readonly<Record<string, string>> = { O: '0', I: '1', L: '1' };

/** Multiplication by x modulo x⁵ + x² + 1. */
const timesX = (n: number): number => ((n << 1) ^ (n & 16 ? 0b100101 : 0)) & 31;

/** Weights x⁴, x³, x², x: all unlike, and unlike the 1 of the check itself. */
function check(digits: readonly number[], group: number): number {
  return digits.reduce((sum, digit) => timesX(sum ^ digit), 0) ^ group;
}

function digest(key: Uint8Array): bigint {
  const hash = sha256(Buffer.concat([Buffer.from('gpd-recovery/1\n'), key]));
  return BigInt(`0x${hash.toString('hex')}`) >> BigInt(256 - HASH_BITS);
}

function writeGroup(bits: number, group: number): string {
  const digits = [15, 10, 5, 0].map((shift) => (bits >> shift) & 31);
  return [...digits, check(digits, group)].map((digit) => ALPHABET[digit]).join('');
}

/** 14 groups, in their order. */
export function writeRecoveryKey(key: Uint8Array): readonly string[] {
  const all = (BigInt(`0x${Buffer.from(key).toString('hex')}`) << 24n) | digest(key);
  return Array.from({ length: GROUPS }, (_, i) => {
    const bits = Number((all >> BigInt((GROUPS - 1 - i) * HASH_BITS)) & 0xfffffn);
    return writeGroup(bits, i + 1);
  });
}

const wrong = (why: string) => ({ ok: false, why }) as const;

/** Null: a character that is not in the alphabet. */
function digitsOf(group: string): number[] | null {
  const digits = Array.from(group, (letter) => ALPHABET.indexOf(MISREAD[letter] ?? letter));
  return digits.includes(-1) ? null : digits;
}

function faultOf(group: string, number: number): string | null {
  if (group.length !== GROUP_CHARS) return `has ${group.length} characters instead of ${GROUP_CHARS}`;
  const digits = digitsOf(group);
  if (!digits) return 'has a character that recovery keys do not use';
  return check(digits.slice(0, -1), number) === digits.at(-1) ? null : 'is not as printed';
}

/** Lines that begin with # are words for people; spaces and hyphens stand between groups, or nothing at all. */
function split(text: string): string[] {
  const lines = text.split('\n').filter((line) => !line.trimStart().startsWith('#'));
  const groups = lines
    .join(' ')
    .toUpperCase()
    .split(/[\s-]+/)
    .filter((group) => group !== '');
  const [only = ''] = groups;
  const unbroken = groups.length === 1 && only.length === GROUPS * GROUP_CHARS;
  return unbroken ? (only.match(/.{5}/g) ?? []) : groups;
}

function nameFaults(groups: readonly string[]): string | null {
  const faults = groups.flatMap((group, i) => {
    const fault = faultOf(group, i + 1);
    return fault === null ? [] : [`group ${i + 1} ${fault}`];
  });
  return faults.length === 0 ? null : faults.join('; ');
}

/** Reads what a person typed from paper. What is wrong says which group it is, and never what is in it. */
export function readRecoveryKey(text: string) {
  const groups = split(text);
  if (groups.length !== GROUPS)
    return wrong(`a recovery key has ${GROUPS} groups; this has ${groups.length}`);
  const faults = nameFaults(groups);
  if (faults !== null) return wrong(faults);
  const all = groups.reduce((sum, group) => {
    const digits = digitsOf(group) ?? [];
    return digits.slice(0, -1).reduce((bits, digit) => (bits << 5n) | BigInt(digit), sum);
  }, 0n);
  const hex = (all >> 24n).toString(16).padStart(KEY_BYTES * 2, '0');
  const key = Buffer.from(hex, 'hex');
  const typed = groups.join('').replace(/[OIL]/g, (letter) => MISREAD[letter] ?? letter);
  if (writeRecoveryKey(key).join('') === typed) return { ok: true, key } as const;
  return wrong('each group is valid, but together they are not a recovery key: compare all of them');
}
