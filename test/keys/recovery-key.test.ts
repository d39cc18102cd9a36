import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readRecoveryKey, writeRecoveryKey } from '../../src/keys/recovery-key.ts';
import { fc } from '../support/property.ts';

const ALPHABET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
const keys = fc.uint8Array({ minLength: 32, maxLength: 32 });
const groupsOf = (key: Uint8Array): string[] => [...writeRecoveryKey(key)];
const reasonFor = (groups: readonly string[]): string => {
  const read = readRecoveryKey(groups.join(' '));
  return read.ok ? 'ok' : read.reason;
};

describe('a recovery key', () => {
  it('is these groups for a known key', () => {
    const key = Buffer.from(Array.from({ length: 32 }, (_, i) => i));
    expect(writeRecoveryKey(key).join(' ')).toMatchInlineSnapshot(
      `"gpdke y1qqq syqcy q5rqw zqfpg 9scrg wpugp zysnz s23v9 ccryd pk8qa rc0sz ctwn6"`,
    );
  });

  it('gives the key back, however it is typed', () => {
    fc.assert(
      fc.property(
        keys,
        fc.constantFrom(' ', '-', '\n', '  \r\n', ''),
        fc.boolean(),
        (key, between, large) => {
          const text = groupsOf(key).join(between);
          const typed = `# a line for people: not read\n${large ? text.toUpperCase() : text}\n`;
          expect(readRecoveryKey(typed)).toEqual({ ok: true, key: Buffer.from(key) });
        },
      ),
    );
  });

  it('names the group of a single wrong character', () => {
    const groups = groupsOf(randomBytes(32));
    for (const [i, group] of groups.entries()) {
      for (let at = 0; at < group.length; at += 1) {
        const letter = group[at] === 'q' ? 'p' : 'q';
        const typed = groups.with(i, group.slice(0, at) + letter + group.slice(at + 1));
        expect(reasonFor(typed)).toBe(`group ${i + 1} is not as printed`);
      }
    }
  });

  it('refuses as a whole where two groups changed places, or one is of another key', () => {
    const [a, b] = [groupsOf(randomBytes(32)), groupsOf(randomBytes(32))];
    const whole = 'it is not as printed: compare all groups';
    expect(reasonFor(a.with(3, a[7] ?? '').with(7, a[3] ?? ''))).toBe(whole);
    expect(reasonFor(a.with(5, b[5] ?? ''))).toBe(whole);
  });

  it('names what is short, strange or missing, and never repeats a group', () => {
    const groups = groupsOf(randomBytes(32));
    expect(reasonFor(groups.with(1, 'y1q'))).toBe('group 2 has 3 characters instead of 5');
    expect(reasonFor(groups.with(12, 'qqqb!'))).toBe(
      'group 13 has a character that recovery keys do not use',
    );
    expect(reasonFor(groups.with(0, 'gpdco'))).toBe('group 1 is not as printed');
    expect(reasonFor(groups.slice(1))).toMatch(/has 13 groups; this has 12/);
    expect(reasonFor([])).toMatch(/this has 0/);
    expect(reasonFor([...groups, 'qqqqq'])).toMatch(/this has 14/);
  });

  it('tells a key apart from what only looks like one', () => {
    const letters = fc.array(fc.constantFrom(...ALPHABET.split('')), { minLength: 58, maxLength: 58 });
    fc.assert(
      fc.property(letters, (text) => {
        expect(readRecoveryKey(`gpdkey1${text.join('')}`).ok).toBe(false);
      }),
      { numRuns: 10 },
    );
  });
});
