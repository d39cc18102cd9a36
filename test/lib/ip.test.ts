import { describe, expect, it } from 'vitest';
import { inRanges, isLoopback, parseAddress, parseRange, resolveClient } from '../../src/lib/ip.ts';
import { fc } from '../support/property.ts';

describe('resolveClient', () => {
  const trusted = ['10.0.0.0/8', '2001:db8:1::/48'].map(parseRange);

  it('knows when the peer is a proxy, with a header or without', () => {
    expect(resolveClient('10.0.0.1', null, trusted).behindProxy).toBe(true);
    expect(resolveClient('10.0.0.1', ['192.0.2.1'], trusted).behindProxy).toBe(true);
    expect(resolveClient('192.0.2.1', ['10.0.0.1'], trusted).behindProxy).toBe(false);
    expect(resolveClient(undefined, ['10.0.0.1'], trusted).behindProxy).toBe(false);
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
