import { describe, expect, it } from 'vitest';
import { forwardedHops, inRanges, parseAddress, parseRange, resolveClient } from '../../src/lib/ip.ts';
import { announcedSeed } from '../support/make.ts';
import { fc } from '../support/property.ts';

/** Right to left through the trusted proxies; whatever stands left of the first stranger was written by the stranger. */

const seed = Number(announcedSeed('forwarded')) % 2 ** 31;
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
const client = (sent: Sent): string | null => resolve(sent).address?.toString() ?? null;

describe('X-Forwarded-For', () => {
  it.each([
    ['one client', '203.0.113.9', '203.0.113.9'],
    ['a client behind two proxies of ours', '203.0.113.9, 10.0.0.2, 10.0.0.3', '203.0.113.9'],
    ['a forged address left of the client', '1.1.1.1, 203.0.113.9', '203.0.113.9'],
    ['a forged proxy left of the client', '10.9.9.9, 203.0.113.9', '203.0.113.9'],
    ['a forged address left of a proxy of ours', '1.1.1.1, 203.0.113.9, 10.0.0.2', '203.0.113.9'],
    ['only proxies of ours: the leftmost', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['a port', '203.0.113.9:51234', '203.0.113.9'],
    ['IPv6', '2001:db8::9', '2001:db8::9'],
    ['IPv6 with a port', '[2001:db8::9]:51234', '2001:db8::9'],
    ['IPv6 with a zone', 'fe80::9%eth0', 'fe80::9'],
    ['IPv4 mapped into IPv6', '::ffff:203.0.113.9', '203.0.113.9'],
    ['a proxy of ours mapped into IPv6', '203.0.113.9, ::ffff:10.0.0.2', '203.0.113.9'],
    ['an IPv6 proxy of ours', '203.0.113.9, 2001:db8:ffff::1', '203.0.113.9'],
    ['no blanks', '203.0.113.9,10.0.0.2', '203.0.113.9'],
    ['many blanks', '  203.0.113.9 ,\t10.0.0.2  ', '203.0.113.9'],
    ['garbage at the right: nobody vouches for what is left of it', '203.0.113.9, garbage', PROXY],
    ['garbage behind a proxy of ours', '203.0.113.9, x, 10.0.0.2', '10.0.0.2'],
    ['an empty hop', '203.0.113.9, , 10.0.0.2', '10.0.0.2'],
    ['nothing', '', PROXY],
    ['"unknown"', 'unknown', PROXY],
    ['a host name', 'client.example', PROXY],
    ['an address in octal', '0313.0.0161.011', PROXY],
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
    ['quoted', 'for="203.0.113.9"', '203.0.113.9'],
    ['with a port', 'for="203.0.113.9:4711"', '203.0.113.9'],
    ['quoted IPv6', 'for="[2001:db8:cafe::17]"', '2001:db8:cafe::17'],
    ['quoted IPv6 with a port', 'for="[2001:db8:cafe::17]:4711"', '2001:db8:cafe::17'],
    ['among other parameters', 'by=10.0.0.2;proto=https;for=203.0.113.9;host=x', '203.0.113.9'],
    ['through a proxy of ours', 'for=203.0.113.9, for=10.0.0.2', '203.0.113.9'],
    ['with a forged hop at the left', 'for=1.1.1.1, for=203.0.113.9', '203.0.113.9'],
    ['obfuscated', 'for=_hidden', PROXY],
    ['obfuscated behind a proxy of ours', 'for=203.0.113.9, for=_SEVKISEK, for=10.0.0.2', '10.0.0.2'],
    ['"unknown"', 'for=unknown', PROXY],
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
  ])('that sends %s is the client all the same, and is noticed', (_name, sent) => {
    expect(resolve({ ...sent, peer: '203.0.113.66' })).toMatchObject({
      behindProxy: false,
      untrustedForwarded: true,
    });
    expect(client({ ...sent, peer: '203.0.113.66' })).toBe('203.0.113.66');
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
      fc.property(fc.array(hop, { maxLength: 5 }), fc.ipV4(), (forged, own) => {
        const address = parseAddress(own);
        fc.pre(address !== null && !inRanges(address, TRUSTED));
        const left = forged.map((text) => text.replaceAll(',', ';')).join(',');
        expect(client({ xff: `${left}, ${own}, 10.0.0.2` })).toBe(own);
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
});
