import { bech32m } from '@scure/base';
import { tryOr } from '../lib/errors.ts';

/**
 * A master key printed on paper: bech32m (BIP 350) of its 32 bytes, in groups.
 * The checksum detects any error in up to four characters, and a search finds
 * the place of a single one. `gpd master-key` prints and reads it.
 */

const PREFIX = 'gpdkey';
const BEGIN = `${PREFIX}1`;
const GROUPS = 13;
const GROUP_CHARS = 5;
/** The 32 characters of BIP 173. */
const ALPHABET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';

const splitIntoGroups = (text: string): string[] => text.match(/.{1,5}/g) ?? [];

/** @returns the 13 groups in order */
export const writeRecoveryKey = (key: Uint8Array): readonly string[] =>
  splitIntoGroups(bech32m.encodeFromBytes(PREFIX, key));

/** @returns null for a text that is no recovery key */
const decodeKey = (text: string): Uint8Array | null =>
  tryOr(() => {
    const { prefix, bytes } = bech32m.decodeToBytes(text);
    return prefix === PREFIX ? bytes : null;
  }, null);

/** Skips the printed lines that begin with #. Groups may be separated by spaces or hyphens, or not at all. */
function readGroups(text: string): string[] {
  const lines = text.split('\n').filter((line) => !line.trimStart().startsWith('#'));
  const groups = lines
    .join(' ')
    .toLowerCase()
    .split(/[\s-]+/)
    .filter((group) => group !== '');
  return groups.length === 1 && groups[0]?.length === GROUPS * GROUP_CHARS
    ? splitIntoGroups(groups[0])
    : groups;
}

function findFault(group: string, number: number): string | null {
  if (group.length !== GROUP_CHARS) return `has ${group.length} characters instead of ${GROUP_CHARS}`;
  const expectedStart = BEGIN.slice((number - 1) * GROUP_CHARS, number * GROUP_CHARS);
  if (!group.startsWith(expectedStart)) return 'is not as printed';
  const isValid = Array.from(group.slice(expectedStart.length)).every((letter) => ALPHABET.includes(letter));
  return isValid ? null : 'has a character that recovery keys do not use';
}

/**
 * Tries each character in each place.
 * @returns the group of a single wrong character; null if more are wrong
 */
function misprintedGroup(text: string): number | null {
  for (let position = BEGIN.length; position < text.length; position += 1) {
    for (const letter of ALPHABET) {
      if (decodeKey(text.slice(0, position) + letter + text.slice(position + 1)))
        return Math.floor(position / GROUP_CHARS) + 1;
    }
  }
  return null;
}

const refuse = (reason: string) => ({ ok: false, reason }) as const;

/** Reads a key that a person typed from paper. A reason names the wrong group, and never quotes it. */
export function readRecoveryKey(text: string) {
  const groups = readGroups(text);
  if (groups.length !== GROUPS)
    return refuse(`a recovery key has ${GROUPS} groups; this has ${groups.length}`);
  const faults = groups.flatMap((group, i) => {
    const fault = findFault(group, i + 1);
    return fault === null ? [] : [`group ${i + 1} ${fault}`];
  });
  if (faults.length > 0) return refuse(faults.join('; '));
  const typed = groups.join('');
  const key = decodeKey(typed);
  if (key) return { ok: true, key: Buffer.from(key) } as const;
  const group = misprintedGroup(typed);
  return refuse(
    group === null ? 'it is not as printed: compare all groups' : `group ${group} is not as printed`,
  );
}
