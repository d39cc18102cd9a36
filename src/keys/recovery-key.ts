import { bech32m } from '@scure/base';
import { tryOr } from '../lib/errors.ts';

/**
 * A master key on paper: bech32m (BIP 350) of its 32 bytes, in groups. Its checksum finds every error in up to four characters; of
 * a single one it also says which it is.
 */

const PREFIX = 'gpdkey';
const BEGIN = `${PREFIX}1`;
const GROUPS = 13;
const GROUP_CHARS = 5;
/** The 32 characters of BIP 173. */
const ALPHABET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';

const groupsOf = (text: string): string[] => text.match(/.{1,5}/g) ?? [];

/** 13 groups, in their order. */
export const writeRecoveryKey = (key: Uint8Array): readonly string[] =>
  groupsOf(bech32m.encodeFromBytes(PREFIX, key));

/** Null for what is no recovery key. */
const decode = (text: string): Uint8Array | null =>
  tryOr(() => {
    const { prefix, bytes } = bech32m.decodeToBytes(text);
    return prefix === PREFIX ? bytes : null;
  }, null);

/** Lines that begin with # are words for people; spaces and hyphens stand between groups, or nothing at all. */
function split(text: string): string[] {
  const lines = text.split('\n').filter((line) => !line.trimStart().startsWith('#'));
  const groups = lines
    .join(' ')
    .toLowerCase()
    .split(/[\s-]+/)
    .filter((group) => group !== '');
  return groups.length === 1 && groups[0]?.length === GROUPS * GROUP_CHARS ? groupsOf(groups[0]) : groups;
}

function faultOf(group: string, number: number): string | null {
  if (group.length !== GROUP_CHARS) return `has ${group.length} characters instead of ${GROUP_CHARS}`;
  const begin = BEGIN.slice((number - 1) * GROUP_CHARS, number * GROUP_CHARS);
  if (!group.startsWith(begin)) return 'is not as printed';
  const isKnown = Array.from(group.slice(begin.length)).every((letter) => ALPHABET.includes(letter));
  return isKnown ? null : 'has a character that recovery keys do not use';
}

/** The group with the one wrong character; null where more are wrong. */
function misprintedGroup(text: string): number | null {
  for (let at = BEGIN.length; at < text.length; at += 1) {
    for (const letter of ALPHABET) {
      if (decode(text.slice(0, at) + letter + text.slice(at + 1))) return Math.floor(at / GROUP_CHARS) + 1;
    }
  }
  return null;
}

const wrong = (why: string) => ({ ok: false, why }) as const;

/** Reads what a person typed from paper. What is wrong says which group it is, and never what is in it. */
export function readRecoveryKey(text: string) {
  const groups = split(text);
  if (groups.length !== GROUPS)
    return wrong(`a recovery key has ${GROUPS} groups; this has ${groups.length}`);
  const faults = groups.flatMap((group, i) => {
    const fault = faultOf(group, i + 1);
    return fault === null ? [] : [`group ${i + 1} ${fault}`];
  });
  if (faults.length > 0) return wrong(faults.join('; '));
  const typed = groups.join('');
  const key = decode(typed);
  if (key) return { ok: true, key: Buffer.from(key) } as const;
  const group = misprintedGroup(typed);
  return wrong(
    group === null ? 'it is not as printed: compare all groups' : `group ${group} is not as printed`,
  );
}
