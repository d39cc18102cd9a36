import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readRecoveryKey, writeRecoveryKey } from '../../src/keys/recovery-key.ts';
import { fc } from '../support/property.ts';

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const keys = fc.uint8Array({ minLength: 32, maxLength: 32 });
const groupsOf = (key: Uint8Array): string[] => [...writeRecoveryKey(key)];
const why = (groups: readonly string[]): string => {
  const read = readRecoveryKey(groups.join(' '));
  return read.ok ? 'ok' : read.why;
};

describe('a recovery key', () => {
  it('is these groups for a known key', () => {
    expect(writeRecoveryKey(Buffer.alloc(32, 0))).toMatchInlineSnapshot(`
      [
        "00001",
        "00002",
        "00003",
        "00004",
        "00005",
        "00006",
        "00007",
        "00008",
        "00009",
        "0000A",
        "0000B",
        "0000C",
        "0000D",
        "G7SMR",
      ]
    `);
    expect(writeRecoveryKey(Buffer.from(Array.from({ length: 32 }, (_, i) => i)))).toMatchInlineSnapshot(`
      [
        "000G4",
        "40R4F",
        "0M30Y",
        "E209X",
        "185GE",
        "R38EY",
        "1W81B",
        "24GK1",
        "2GAHJ",
        "C5RR3",
        "34D18",
        "P70XC",
        "3RFGT",
        "6MDG4",
      ]
    `);
  });

  it('gives the key back, however it is typed', () => {
    fc.assert(
      fc.property(
        keys,
        fc.constantFrom(' ', '-', '\n', '  \r\n', ''),
        fc.boolean(),
        (key, between, small) => {
          const text = groupsOf(key).join(between);
          const typed = `# a line for people: not read\n${small ? text.toLowerCase() : text}\n`;
          expect(readRecoveryKey(typed)).toEqual({ ok: true, key: Buffer.from(key) });
        },
      ),
    );
  });

  it('takes O for 0, and I and L for 1', () => {
    const groups = groupsOf(Buffer.alloc(32, 0)).join(' ');
    const typed = groups.replaceAll('0', 'O').replace('1', 'I').replace('1', 'l');
    expect(readRecoveryKey(typed)).toEqual({ ok: true, key: Buffer.alloc(32, 0) });
  });

  it('names the group of every single wrong character', () => {
    const groups = groupsOf(randomBytes(32));
    let tried = 0;
    for (const [i, group] of groups.entries()) {
      for (let at = 0; at < group.length; at += 1) {
        for (const letter of ALPHABET) {
          if (letter === group[at]) continue;
          const typed = groups.with(i, group.slice(0, at) + letter + group.slice(at + 1));
          expect(why(typed)).toBe(`group ${i + 1} is not as printed`);
          tried += 1;
        }
      }
    }
    expect(tried).toBe(14 * 5 * 31);
  });

  it('names the group in which two characters changed places', () => {
    fc.assert(
      fc.property(keys, fc.nat(13), fc.nat(4), fc.nat(4), (key, i, a, b) => {
        const groups = groupsOf(key);
        const letters = (groups[i] ?? '').split('');
        fc.pre(letters[a] !== letters[b]);
        [letters[a], letters[b]] = [letters[b] ?? '', letters[a] ?? ''];
        expect(why(groups.with(i, letters.join('')))).toBe(`group ${i + 1} is not as printed`);
      }),
    );
  });

  it('names both groups that changed places', () => {
    const groups = groupsOf(randomBytes(32));
    const typed = groups.with(3, groups[7] ?? '').with(7, groups[3] ?? '');
    expect(why(typed)).toBe('group 4 is not as printed; group 8 is not as printed');
  });

  it('names what is short, strange or missing, and never repeats a group', () => {
    const groups = groupsOf(randomBytes(32));
    expect(why(groups.with(1, 'ABC'))).toBe('group 2 has 3 characters instead of 5');
    expect(why(groups.with(13, 'ABCU!'))).toBe('group 14 has a character that recovery keys do not use');
    expect(why(groups.slice(1))).toMatch(/has 14 groups; this has 13/);
    expect(why([])).toMatch(/this has 0/);
    expect(why([...groups, '00000'])).toMatch(/this has 15/);
  });

  it('is refused as a whole when groups of another key fit in', () => {
    const [a, b] = [groupsOf(Buffer.alloc(32, 1)), groupsOf(Buffer.alloc(32, 2))];
    expect(why(a.with(5, b[5] ?? ''))).toMatch(/together they are not a recovery key/);
  });

  it('tells a key apart from what only looks like one: the 4 spare bits are part of it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...ALPHABET.split('')), { minLength: 70, maxLength: 70 }),
        (letters) => {
          expect(readRecoveryKey(letters.join('')).ok).toBe(false);
        },
      ),
    );
  });
});
