import { describe, expect, it } from 'vitest';
import {
  forwardedHops,
  inRanges,
  isLoopback,
  limitKey,
  parseAddress,
  parseRange,
  resolveClient,
} from '../../src/lib/ip.ts';
import { fc } from '../support/property.ts';

const shown = (text: string): string | null => parseAddress(text)?.toString() ?? null;

describe('parseAddress', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1:443', '192.0.2.1'],
    [' 192.0.2.1\t', '192.0.2.1'],
    ['2001:db8::1', '2001:db8::1'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:8443', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%25eth0]:80', 'fe80::1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['[::ffff:192.0.2.1]:80', '192.0.2.1'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['::', '::'],
    ['::1', '::1'],
  ])('reads %j', (text, address) => {
    expect(shown(text)).toBe(address);
  });

  it.each([
    '',
    ' ',
    'localhost',
    'unknown',
    '_hidden',
    '192.0.2',
    '192.0.2.256',
    '192.0.2.1.5',
    '0xC0.0.2.1',
    '0300.0.2.1',
    '3221225985',
    '192.0.2.1:',
    '192.0.2.1:123456',
    '192.0.2.1,198.51.100.1',
    '192.0.2.1/24',
    '2001:db8::1::2',
    '2001:db8::g',
    '[2001:db8::1',
    '2001:db8::1]',
    ':::',
    '1:2:3:4:5:6:7:8:9',
    '<script>',
  ])('finds no address in %j', (text) => {
    expect(shown(text)).toBeNull();
  });

  it('never throws', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'0123456789abcf:.[]%/x '.split(''), '::', 'ffff') }),
        (text) => {
          parseAddress(text);
        },
      ),
    );
  });
});

describe('parseRange', () => {
  it.each([
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['10.0.0.7', '10.0.0.7', true],
    ['10.0.0.7', '10.0.0.8', false],
    ['0.0.0.0/0', '203.0.113.1', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['2001:db8::/32', '2001:db8:ffff::1', true],
    ['2001:db8::/32', '2001:db9::1', false],
    ['::1', '::1', true],
    ['::/0', '127.0.0.1', false],
    ['127.0.0.1', '::ffff:127.0.0.1', true],
  ])('%s and %s', (range, address, within) => {
    expect(inRanges(parseAddress(address)!, [parseRange(range)])).toBe(within);
  });

  it.each(['', 'proxy', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/-1', '/8', '2001:db8::/129', '10.0.0.0/8/8'])(
    'throws at %j',
    (text) => {
      expect(() => parseRange(text)).toThrow();
    },
  );
});

describe('limitKey', () => {
  it('is the address of an IPv4 client, mapped or not', () => {
    expect(limitKey(parseAddress('192.0.2.1')!)).toBe('192.0.2.1');
    expect(limitKey(parseAddress('::ffff:192.0.2.1')!)).toBe('192.0.2.1');
  });

  it('is the /64 of an IPv6 client', () => {
    const key = (text: string): string => limitKey(parseAddress(text)!);
    expect(key('2001:db8:0:1:aaaa::1')).toBe(key('2001:db8:0:1:bbbb:cccc:dddd:eeee'));
    expect(key('2001:db8:0:1::1')).not.toBe(key('2001:db8:0:2::1'));
    expect(key('2001:db8:0:1::1')).not.toBe(key('2001:db8:1:1::1'));
    expect(key('1:23::')).not.toBe(key('12:3::'));
  });
});

describe('forwardedHops', () => {
  it.each<[string, string | undefined, string | undefined, string[] | null]>([
    ['neither header', undefined, undefined, null],
    ['X-Forwarded-For', '192.0.2.1, 10.0.0.1', undefined, ['192.0.2.1', ' 10.0.0.1']],
    ['X-Forwarded-For before Forwarded', '192.0.2.1', 'for=192.0.2.9', ['192.0.2.1']],
    ['RFC 7239, section 4', undefined, 'For="[2001:db8:cafe::17]:4711"', ['[2001:db8:cafe::17]:4711']],
    ['its other parameters', undefined, 'proto=http;by=203.0.113.43; for=192.0.2.60', ['192.0.2.60']],
    ['several hops', undefined, 'for=192.0.2.43, for="198.51.100.17";by=x', ['192.0.2.43', '198.51.100.17']],
    ['a hop without an address', undefined, 'for=192.0.2.43, proto=https', ['192.0.2.43', '']],
    ['a parameter that only ends in for', undefined, 'xfor=192.0.2.43', ['']],
  ])('%s', (_what, forwardedFor, forwarded, hops) => {
    expect(forwardedHops(forwardedFor, forwarded)).toEqual(hops);
  });

  it('lets an obfuscated or unknown hop end the walk', () => {
    const trusted = [parseRange('10.0.0.0/8')];
    for (const hop of ['for=unknown', 'for=_gazonk', 'for="_gazonk:80"']) {
      const hops = forwardedHops(undefined, `for=192.0.2.1, ${hop}, for=10.0.0.2`);
      expect(resolveClient('10.0.0.1', hops, trusted).address?.toString()).toBe('10.0.0.2');
    }
  });
});

describe('resolveClient', () => {
  const trusted = ['10.0.0.0/8', '2001:db8:1::/48'].map(parseRange);
  const resolve = (
    peer: string | undefined,
    forwarded?: string,
    ranges = trusted,
  ): [string | null, boolean] => {
    const { address, untrustedForwarded } = resolveClient(peer, forwardedHops(forwarded, undefined), ranges);
    return [address?.toString() ?? null, untrustedForwarded];
  };

  it.each<[string, string | undefined, string | undefined, string | null, boolean]>([
    ['no header: the peer', '198.51.100.7', undefined, '198.51.100.7', false],
    ['a proxy without the header: the proxy', '10.0.0.1', undefined, '10.0.0.1', false],
    ['a stranger with the header: the stranger, noted', '198.51.100.7', '192.0.2.1', '198.51.100.7', true],
    ['a proxy: what it saw', '10.0.0.1', '192.0.2.1', '192.0.2.1', false],
    ['a forged hop on the left is not believed', '10.0.0.1', '1.1.1.1, 192.0.2.1', '192.0.2.1', false],
    ['a chain of proxies', '10.0.0.1', '1.1.1.1, 192.0.2.1, 10.0.0.3,10.0.0.2', '192.0.2.1', false],
    ['IPv6 proxies and clients', '2001:db8:1::9', '2001:db8:2::5', '2001:db8:2::5', false],
    ['a mapped proxy', '::ffff:10.0.0.1', '192.0.2.1', '192.0.2.1', false],
    ['a hop with its port', '10.0.0.1', '192.0.2.1:51234', '192.0.2.1', false],
    ['only proxies: the outermost', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3', false],
    ['garbage ends the walk', '10.0.0.1', '192.0.2.1, garbage, 10.0.0.2', '10.0.0.2', false],
    ['an empty header', '10.0.0.1', '', '10.0.0.1', false],
    ['empty hops', '10.0.0.1', '192.0.2.1,, ', '10.0.0.1', false],
    ['no peer', undefined, '192.0.2.1', null, true],
    ['a peer that is no address', 'pipe', '192.0.2.1', null, true],
  ])('%s', (_what, peer, forwarded, address, stranger) => {
    expect(resolve(peer, forwarded)).toEqual([address, stranger]);
  });

  it('knows when the peer is a proxy, with a header or without', () => {
    expect(resolveClient('10.0.0.1', null, trusted).behindProxy).toBe(true);
    expect(resolveClient('10.0.0.1', ['192.0.2.1'], trusted).behindProxy).toBe(true);
    expect(resolveClient('192.0.2.1', ['10.0.0.1'], trusted).behindProxy).toBe(false);
    expect(resolveClient(undefined, ['10.0.0.1'], trusted).behindProxy).toBe(false);
  });

  it('believes nobody by default', () => {
    expect(resolve('10.0.0.1', '192.0.2.1', [])).toEqual(['10.0.0.1', true]);
  });

  it('answers with an untrusted address, unless all hops are trusted', () => {
    const address = fc.constantFrom(
      '10.0.0.1',
      '10.9.9.9',
      '192.0.2.1',
      '203.0.113.9',
      'garbage',
      '2001:db8:1::1',
    );
    fc.assert(
      fc.property(fc.array(address, { minLength: 1, maxLength: 6 }), (hops) => {
        const { address: client } = resolveClient('10.0.0.2', hops, trusted);
        const last = hops
          .map((hop) => parseAddress(hop))
          .findLastIndex((hop) => hop === null || !inRanges(hop, trusted));
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
