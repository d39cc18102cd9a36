import { describe, expect, it } from 'vitest';
import { inRanges, limitKey, networkKey, parseAddress, parseRange } from '../../src/lib/ip.ts';
import { announcedSeed } from '../support/make.ts';
import { fc } from '../support/property.ts';

/** Addresses as proxies and attackers write them. */

const seed = Number(announcedSeed('addresses')) % 2 ** 31;
const canonical = (text: string): string | null => parseAddress(text)?.toString() ?? null;

describe('an address', () => {
  it.each([
    ['198.51.100.7', '198.51.100.7'],
    [' 198.51.100.7\t', '198.51.100.7'],
    ['198.51.100.7:8443', '198.51.100.7'],
    ['2001:db8::7', '2001:db8::7'],
    ['2001:DB8:0:0:0:0:0:7', '2001:db8::7'],
    ['[2001:db8::7]', '2001:db8::7'],
    ['[2001:db8::7]:443', '2001:db8::7'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%25en0]:80', 'fe80::1'],
    ['::ffff:198.51.100.7', '198.51.100.7'],
    ['::ffff:c633:6407', '198.51.100.7'],
    ['[::ffff:198.51.100.7]:1234', '198.51.100.7'],
    ['::1', '::1'],
  ])('%s is %s', (text, expected) => {
    expect(canonical(text)).toBe(expected);
  });

  it.each([
    '',
    ' ',
    'unknown',
    '_hidden',
    '_SEVKISEK',
    'example.com',
    '256.1.1.1',
    '1.2.3',
    '1.2.3.4.5',
    '010.0.0.1',
    '0x7f.0.0.1',
    '2130706433',
    '1.2.3.4/8',
    '1.2.3.4, 5.6.7.8',
    '1.2.3.4:port',
    '1.2.3.4:123456',
    '2001:db8::7::1',
    '[2001:db8::7',
    '2001:db8::7]',
    '[198.51.100.7',
    ':::',
    '"198.51.100.7"',
    '\u0661.2.3.4',
    '198.51.100.7\u0000',
  ])('%j is none', (text) => {
    expect(canonical(text)).toBeNull();
  });

  it('of any text never throws, and reads back as itself', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.ipV4(), fc.ipV6(), fc.ipV4Extended()), (text) => {
        const read = canonical(text);
        if (read !== null) expect(canonical(read)).toBe(read);
      }),
      { seed, numRuns: 1000 },
    );
  });
});

function keys(text: string): readonly [string, string] {
  const address = parseAddress(text);
  if (!address) throw new Error(`${text} is no address`);
  return [limitKey(address), networkKey(address)];
}

describe('what a client is counted under', () => {
  it.each([
    ['198.51.100.7', '198.51.100.7', '198.51.100.0/24'],
    ['198.51.100.8', '198.51.100.8', '198.51.100.0/24'],
    ['198.51.101.7', '198.51.101.7', '198.51.101.0/24'],
    ['::ffff:198.51.100.7', '198.51.100.7', '198.51.100.0/24'],
    ['2001:db8:1:2::7', '2001:db8:1:2::/64', '2001:db8:1::/48'],
    ['2001:db8:1:2:ffff::1', '2001:db8:1:2::/64', '2001:db8:1::/48'],
    ['2001:db8:1:3::7', '2001:db8:1:3::/64', '2001:db8:1::/48'],
    ['2001:db8:2:2::7', '2001:db8:2:2::/64', '2001:db8:2::/48'],
    ['2001:db8::1', '2001:db8:0:0::/64', '2001:db8:0::/48'],
  ])('%s: a limit of %s, a network of %s', (text, limit, network) => {
    expect(keys(text)).toEqual([limit, network]);
  });
});

describe('a range', () => {
  it.each([
    ['10.0.0.0/8', '10.255.1.2', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['10.0.0.0/8', '::ffff:10.1.2.3', true],
    ['192.0.2.1', '192.0.2.1', true],
    ['192.0.2.1', '192.0.2.2', false],
    ['2001:db8::/32', '2001:db8:ffff::1', true],
    ['2001:db8::/32', '2001:db9::1', false],
    ['::1', '::1', true],
    ['::/0', '192.0.2.1', false],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['0.0.0.0/0', '203.0.113.9', true],
  ])('%s and %s: %s', (range, text, inside) => {
    const address = parseAddress(text);
    expect(address && inRanges(address, [parseRange(range)])).toBe(inside);
  });

  it.each(['', 'lan', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/x', '2001:db8::/129', '10.0.0.0/8/8'])(
    '%j is none',
    (text) => {
      expect(() => parseRange(text)).toThrow();
    },
  );
});
