import { describe, expect, it } from 'vitest';
import {
  forwardedHops,
  inRanges,
  isLoopback,
  isLoopbackAuthority,
  limitKey,
  networkKey,
  parseAddress,
  parseRange,
  resolveClient,
} from '../../src/lib/ip.ts';
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
    ...['', ' ', 'unknown', '_SEVKISEK', 'example.com', '256.1.1.1', '1.2.3', '1.2.3.4.5', '010.0.0.1'],
    ...['0x7f.0.0.1', '2130706433', '1.2.3.4/8', '1.2.3.4, 5.6.7.8', '1.2.3.4:port', '1.2.3.4:123456'],
    ...['2001:db8::7::1', '[2001:db8::7', '2001:db8::7]', '[198.51.100.7', ':::', '"198.51.100.7"'],
    ...['\u0661.2.3.4', '198.51.100.7\u0000'],
  ])('%j is not an address', (text) => {
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
    ['198.51.101.7', '198.51.101.7', '198.51.101.0/24'],
    ['::ffff:198.51.100.7', '198.51.100.7', '198.51.100.0/24'],
    ['2001:db8:1:2::7', '2001:db8:1:2::/64', '2001:db8:1::/48'],
    ['2001:db8:1:2:ffff::1', '2001:db8:1:2::/64', '2001:db8:1::/48'],
    ['2001:db8:2:2::7', '2001:db8:2:2::/64', '2001:db8:2::/48'],
    ['2001:db8::1', '2001:db8:0:0::/64', '2001:db8:0::/48'],
    // Without separators these two would be one.
    ['1:23::', '1:23:0:0::/64', '1:23:0::/48'],
    ['12:3::', '12:3:0:0::/64', '12:3:0::/48'],
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
    '%j is not a range',
    (text) => {
      expect(() => parseRange(text)).toThrow();
    },
  );
});

/** Right to left through the trusted proxies; whatever stands left of the first stranger was written by the stranger. */

const TRUSTED = ['127.0.0.0/8', '10.0.0.0/8', '2001:db8:ffff::/48'].map(parseRange);
const PROXY = '10.0.0.1';

interface Sent {
  readonly peer?: string;
  readonly xff?: string;
  readonly forwarded?: string;
}

function resolve({ peer = PROXY, xff, forwarded }: Sent): ReturnType<typeof resolveClient> {
  return resolveClient(peer, forwardedHops(xff, forwarded), TRUSTED);
}
const client = (request: Sent): string | null => resolve(request).address?.toString() ?? null;

describe('X-Forwarded-For', () => {
  it.each([
    ['one client', '203.0.113.9', '203.0.113.9'],
    ['a client behind two proxies of ours', '203.0.113.9, 10.0.0.2, 10.0.0.3', '203.0.113.9'],
    ['a forged proxy left of the client', '10.9.9.9, 203.0.113.9', '203.0.113.9'],
    ['a forged address left of a proxy of ours', '1.1.1.1, 203.0.113.9, 10.0.0.2', '203.0.113.9'],
    ['only proxies of ours: the leftmost', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['a port', '203.0.113.9:51234', '203.0.113.9'],
    ['a proxy of ours mapped into IPv6', '203.0.113.9, ::ffff:10.0.0.2', '203.0.113.9'],
    ['an IPv6 proxy of ours', '203.0.113.9, 2001:db8:ffff::1', '203.0.113.9'],
    ['no blanks', '203.0.113.9,10.0.0.2', '203.0.113.9'],
    ['garbage at the right: nobody vouches for what is left of it', '203.0.113.9, garbage', PROXY],
    ['garbage behind a proxy of ours', '203.0.113.9, x, 10.0.0.2', '10.0.0.2'],
    ['an empty hop', '203.0.113.9, , 10.0.0.2', '10.0.0.2'],
    ['nothing', '', PROXY],
    ['"unknown"', 'unknown', PROXY],
  ])('%s', (_name, xff, expected) => {
    expect(client({ xff })).toBe(expected);
  });

  it('comes before Forwarded when both are there', () => {
    expect(client({ xff: '203.0.113.9', forwarded: 'for=198.51.100.1' })).toBe('203.0.113.9');
  });
});

describe('Forwarded', () => {
  it.each([
    ['one client', 'for=203.0.113.9', '203.0.113.9'],
    ['in capitals', 'For=203.0.113.9', '203.0.113.9'],
    ['with a port', 'for="203.0.113.9:4711"', '203.0.113.9'],
    ['quoted IPv6 with a port', 'for="[2001:db8:cafe::17]:4711"', '2001:db8:cafe::17'],
    ['among other parameters', 'by=10.0.0.2;proto=https;for=203.0.113.9;host=x', '203.0.113.9'],
    ['through a proxy of ours', 'for=203.0.113.9, for=10.0.0.2', '203.0.113.9'],
    ['obfuscated behind a proxy of ours', 'for=203.0.113.9, for=_SEVKISEK, for=10.0.0.2', '10.0.0.2'],
    ['without for', 'proto=https;by=10.0.0.2', PROXY],
    ['with an open quote', 'for="203.0.113.9', PROXY],
    ['with a quote that a client left open', 'for="1.1.1.1, for=203.0.113.9', '203.0.113.9'],
    ['with a name that only ends in for', 'xfor=1.1.1.1', PROXY],
    ['empty', '', PROXY],
    ['garbage', ';;;=,,"', PROXY],
  ])('%s', (_name, forwarded, expected) => {
    expect(client({ forwarded })).toBe(expected);
  });
});

describe('a stranger', () => {
  it.each<readonly [string, Sent]>([
    ['X-Forwarded-For', { xff: '1.1.1.1' }],
    ['Forwarded', { forwarded: 'for=1.1.1.1' }],
    ['the address of a proxy of ours', { xff: '10.0.0.2' }],
    ['garbage', { xff: 'garbage' }],
    ['an empty header', { xff: '' }],
  ])('that sends %s is the client all the same, and is noticed', (_name, request) => {
    expect(resolve({ ...request, peer: '203.0.113.66' })).toMatchObject({
      behindProxy: false,
      untrustedForwarded: true,
    });
    expect(client({ ...request, peer: '203.0.113.66' })).toBe('203.0.113.66');
  });

  it('that sends none is not noticed', () => {
    expect(resolve({ peer: '203.0.113.66' })).toMatchObject({
      behindProxy: false,
      untrustedForwarded: false,
    });
  });

  it.each(['127.0.0.1', '::ffff:127.0.0.1', '::ffff:10.1.1.1', '2001:db8:ffff::5'])(
    'is not our proxy %s',
    (peer) => {
      expect(resolve({ peer, xff: '203.0.113.9' })).toMatchObject({
        behindProxy: true,
        untrustedForwarded: false,
      });
      expect(client({ peer, xff: '203.0.113.9' })).toBe('203.0.113.9');
    },
  );

  it('without an address is nobody', () => {
    expect(resolveClient(undefined, ['1.1.1.1'], TRUSTED)).toMatchObject({
      address: null,
      behindProxy: false,
    });
  });

  it('is everybody when nobody is trusted', () => {
    const { address, behindProxy } = resolveClient('127.0.0.1', ['203.0.113.9'], []);
    expect([address?.toString(), behindProxy]).toEqual(['127.0.0.1', false]);
  });
});

describe('whatever is sent', () => {
  const hop = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.constantFrom('10.0.0.2', '127.0.0.1', 'unknown', '_x', '', ' '),
    fc.string({ maxLength: 12 }),
  );

  it('a client can never become another by writing further to the left', () => {
    fc.assert(
      fc.property(fc.array(hop, { maxLength: 5 }), fc.ipV4(), (forged, clientIp) => {
        const address = parseAddress(clientIp);
        fc.pre(address !== null && !inRanges(address, TRUSTED));
        const forgedHops = forged.map((text) => text.replaceAll(',', ';')).join(',');
        expect(client({ xff: `${forgedHops}, ${clientIp}, 10.0.0.2` })).toBe(clientIp);
      }),
      { seed, numRuns: 400 },
    );
  });

  it('the walk never throws and ends at an address', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.boolean(), (one, two, both) => {
        expect(client(both ? { xff: one, forwarded: two } : { forwarded: two })).not.toBeNull();
      }),
      { seed, numRuns: 400 },
    );
  });

  it('answers with an untrusted address, unless all hops are trusted', () => {
    const texts = ['10.0.0.1', '10.9.9.9', '192.0.2.1', '203.0.113.9', 'garbage', '2001:db8:ffff::1'];
    const address = fc.constantFrom(...texts);
    fc.assert(
      fc.property(fc.array(address, { minLength: 1, maxLength: 6 }), (hops) => {
        const { address: client } = resolveClient('10.0.0.2', hops, TRUSTED);
        const last = hops
          .map((hop) => parseAddress(hop))
          .findLastIndex((hop) => hop === null || !inRanges(hop, TRUSTED));
        const chosen =
          last === -1 ? hops[0] : parseAddress(hops[last]!) ? hops[last] : (hops[last + 1] ?? '10.0.0.2');
        expect(client?.toString()).toBe(chosen);
      }),
    );
  });
});

it.each([
  ['localhost', true],
  ['127.0.0.1', true],
  ['127.9.9.9', true],
  ['[::1]', true],
  ['::1', true],
  ['[::ffff:127.0.0.1]', true],
  ['10.0.0.1', false],
  ['0.0.0.0', false],
  ['[::2]', false],
  ['localhost.example', false],
  ['127.0.0.1.example', false],
  ['', false],
])('isLoopback(%j) is %s', (host, loopback) => {
  expect(isLoopback(host)).toBe(loopback);
});

it.each([
  ['localhost', true],
  ['LOCALHOST:8080', true],
  ['127.0.0.1:8080', true],
  ['[::1]:8080', true],
  ['', false],
  ['::1', false],
  ['127.0.0.1:8080:80', false],
  ['127.0.0.1%25:80', false],
  ['127.0.0.1.evil.example:80', false],
  ['localhost.evil.example', false],
  ['evil.example:127', false],
  ['evil@127.0.0.1', false],
  ['127.1', false],
  ['10.0.0.1', false],
  ['[::2]', false],
])('isLoopbackAuthority(%j) is %s', (authority, loopback) => {
  expect(isLoopbackAuthority(authority)).toBe(loopback);
});
