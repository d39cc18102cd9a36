import { CHOICE_BY_ACTION } from './plan.ts';
import type { Action, Choice, ConsentRecord, Write } from './record.ts';

/** Writes and reads the record as the text of a cookie (ADR 0100). Pure. */

const HOUR_MS = 3_600_000;
const SECOND_MS = 1000;
const RADIX = 36;
const LETTERS = 26;
const FIRST_LETTER = 65;

/** The ledger has the choice; its answer says under which number. */
export const UNKNOWN_PROOF = { seq: 0, hash: '' } as const;

const ACTIONS: Readonly<Record<string, Action>> = { G: 'grant', D: 'deny', W: 'withdraw' };

const toText = (count: number): string => count.toString(RADIX);
const toCount = (text: string | undefined): number => Number.parseInt(text ?? '', RADIX) || 0;

function toLetters(count: number): string {
  const rest = Math.floor(count / LETTERS);
  return (rest > 0 ? toLetters(rest) : '') + String.fromCharCode(FIRST_LETTER + (count % LETTERS));
}
const fromLetters = (letters: string): number =>
  [...letters].reduce((sum, letter) => sum * LETTERS + letter.charCodeAt(0) - FIRST_LETTER, 0);

/** The unsent write that says what the choice says. */
const writeOf = ({ pending }: ConsentRecord, id: string, { choice }: Choice): Write | undefined =>
  pending.findLast(({ action, purposes }) => purposes.includes(id) && CHOICE_BY_ACTION[action] === choice);

export function encodeRecord(record: ConsentRecord): string {
  const groups = new Map<string, [id: string, definition: number | null][]>();
  for (const [id, choice] of Object.entries(record.choices)) {
    // Nothing is granted any more, so the person is asked as if the choice was not there.
    if (choice.ended) continue;
    const write = choice.proof ? undefined : writeOf(record, id, choice);
    const flags = `${choice.choice.charAt(0).toUpperCase()}${choice.overGpc ? 'O' : ''}${write?.gpc ? 'S' : ''}`;
    const head = [
      flags + toText(Math.floor(choice.at / SECOND_MS)),
      toText(choice.version),
      write?.key ?? '',
    ];
    const name = head.join('.');
    groups.set(name, [...(groups.get(name) ?? []), [id, choice.definition]]);
  }
  const texts = [...groups].map(([name, members]) => {
    const first = Math.min(...members.map(([, definition]) => definition ?? Number.MAX_SAFE_INTEGER));
    const ids = members.map(
      ([id, definition]) => id + (definition === null ? '!' : toLetters(definition - first)),
    );
    return `~${name}.${toText(first)}.${ids.join('')}`;
  });
  const hours = toText(Math.floor((record.confirmedAt ?? 0) / HOUR_MS));
  const { secret, principalId, followsLedger } = record;
  return `${secret}${principalId.slice(2)}${followsLedger ? 'F' : '.'}${hours}${texts.join('')}`;
}

const RECORD = /^([\w-]{43})([\w-]{43})([F.])([0-9a-z]+)((?:~[^~]+)*)$/;
const GROUP =
  /^([GDW])(O?)(S?)([0-9a-z]+)\.([0-9a-z]+)\.([\w-]*)\.([0-9a-z]+)\.((?:[0-9a-z-]+(?:[A-Z]+|!))+)$/;

function decodeGroup(text: string) {
  const [, flag = '', over, signal, at, version, key, first, ids = ''] = GROUP.exec(text) ?? [];
  const action = ACTIONS[flag];
  if (!action) return null;
  const choice = {
    choice: CHOICE_BY_ACTION[action],
    version: toCount(version),
    at: toCount(at) * SECOND_MS,
    until: 0,
    proof: key ? null : UNKNOWN_PROOF,
    ...(over && ({ overGpc: true } as const)),
  };
  const choices = [...ids.matchAll(/([0-9a-z-]+)([A-Z]+|!)/g)].map(([, id = '', letters = '!']) => {
    const definition = letters === '!' ? null : toCount(first) + fromLetters(letters);
    return [id, { ...choice, definition }] as const;
  });
  const purposes = choices.map(([id]) => id);
  const write: Write = {
    action,
    purposes,
    policyVersion: choice.version,
    gpc: signal === 'S',
    key: key ?? '',
  };
  return { choices, pending: key ? [write] : [] };
}

/** @returns null for a text that no banner wrote: the person is asked */
export function decodeRecord(text: string): ConsentRecord | null {
  const [, secret = '', hash, follows, hours, rest = ''] = RECORD.exec(text) ?? [];
  const groups = rest.split('~').slice(1).map(decodeGroup);
  if (!secret || groups.includes(null)) return null;
  return {
    secret,
    principalId: `b_${hash}`,
    choices: Object.fromEntries(groups.flatMap((group) => group?.choices ?? [])),
    pending: groups.flatMap((group) => group?.pending ?? []),
    confirmedAt: toCount(hours) * HOUR_MS,
    ...(follows === 'F' && { followsLedger: true }),
  };
}
