import dns, { type LookupAddress } from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { afterEach, describe, expect, it } from 'vitest';
import { checkLiteralHost, EgressRefused, guardedLookup, publicOnly } from '../../src/egress/guard.ts';
import { fetchJsonDocument } from '../../src/egress/send.ts';
import { parseAddress } from '../../src/lib/ip.ts';
import { MEDIA_TYPE } from './support/server.ts';

/** Nothing that is not public is connected to, however it is spelt and whatever a resolver says. */

const PRIVATE: readonly (readonly string[])[] = [
  ['loopback', '127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1'],
  ['this host', '0.0.0.0', '0.1.2.3', '::'],
  ['private', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.0.1', '::ffff:10.0.0.1'],
  [
    'link-local and cloud metadata',
    '169.254.169.254',
    '169.254.0.1',
    'fe80::1',
    'fe80::1%eth0',
    '::ffff:169.254.169.254',
  ],
  ['the host agent of Azure', '168.63.129.16'],
  ['carrier', '100.64.0.1', '100.127.255.255'],
  ['unique local', 'fc00::1', 'fd12:3456::1'],
  ['site-local of old', 'fec0::1'],
  ['multicast and broadcast', '224.0.0.1', '239.1.1.1', '255.255.255.255', 'ff02::1'],
  [
    'documentation and benchmarks',
    '192.0.2.1',
    '198.51.100.1',
    '203.0.113.1',
    '198.18.0.1',
    '2001:db8::1',
    '3fff::1',
  ],
  ['reserved', '240.0.0.1', '192.0.0.1', '100::1', '5f00::1'],
  [
    'translated',
    '64:ff9b::127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::7f00:1',
    '2002:7f00:1::',
    '2001:0:1::',
    '::ffff:0:7f00:1',
  ],
  ['IPv4-compatible', '::127.0.0.1', '::7f00:1', '::10.0.0.1'],
  ['not handed out to anybody', '4000::1', 'fe00::1'],
];
const PUBLIC = ['1.1.1.1', '100.63.255.255', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8'];

const allows = (text: string): boolean => {
  const address = parseAddress(text);
  return address !== null && publicOnly(address);
};

describe('public addresses', () => {
  it.each(PRIVATE)('are not: %s', (_name, ...addresses) => {
    expect(addresses.filter(allows)).toEqual([]);
  });

  it('are what is handed out', () => {
    expect(PUBLIC.filter((text) => !allows(text))).toEqual([]);
  });
});

describe('a literal address', () => {
  it('that is not public is never connected to', () => {
    const addresses = PRIVATE.flatMap(([, ...all]) => all).filter((text) => !text.includes('%'));
    for (const text of addresses) {
      const { hostname } = new URL(`https://${text.includes(':') ? `[${text}]` : text}/`);
      expect(() => checkLiteralHost(hostname, publicOnly), text).toThrow(EgressRefused);
    }
  });

  it.each([
    ['decimal', '2130706433'],
    ['octal', '0177.0.0.1'],
    ['hexadecimal', '0x7f000001'],
    ['short', '127.1'],
    ['with a dot behind it', '127.0.0.1.'],
    ['in other digits', '①②⑦.⓪.⓪.①'],
    ['percent-encoded', '%31%32%37.0.0.1'],
  ])('spelt %s is the same address', async (_name, host) => {
    const { hostname } = new URL(`https://${host}/`);
    expect(() => checkLiteralHost(hostname, publicOnly)).toThrow('the address is not public');
  });

  it('that is public, or a name, passes on', () => {
    for (const host of ['1.1.1.1', '[2606:4700::1111]', 'agent.example', 'localhost']) {
      expect(() => checkLiteralHost(host, publicOnly)).not.toThrow();
    }
  });
});

/** Puts answers of our own in place of the system's resolver, for what no machine's hosts file can say. */
let lookups = 0;
function resolveTo(...answers: readonly (readonly string[])[]): void {
  lookups = 0;
  const fake = (
    _name: string,
    options: { all?: boolean },
    done: (error: Error | null, all: LookupAddress[]) => void,
  ): void => {
    if (options.all !== true) throw new Error('the guard has to see all answers');
    const texts = answers[Math.min(lookups, answers.length - 1)] ?? [];
    lookups += 1;
    done(
      null,
      texts.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  dns.lookup = fake as never;
  syncBuiltinESMExports();
}

const original = dns.lookup;
afterEach(() => {
  dns.lookup = original;
  syncBuiltinESMExports();
});

type Looked = { readonly error: Error | null; readonly found: unknown };
function look(all: boolean, name = 'agent.example'): Promise<Looked> {
  return new Promise((resolve) => {
    guardedLookup(publicOnly)(name, { all }, (error, found) => resolve({ error, found }));
  });
}

describe('a name', () => {
  it.each([
    ['a private address', ['10.0.0.1']],
    ['a private address beside a public one', ['1.1.1.1', '10.0.0.1']],
    ['a public address beside a private one', ['10.0.0.1', '1.1.1.1']],
    ['a public IPv4 and this machine in IPv6', ['1.1.1.1', '::1']],
    ['a public address and one mapped into IPv6', ['2606:4700::1111', '::ffff:127.0.0.1']],
    ['the metadata service', ['169.254.169.254']],
    ['no address', []],
    ['no address at all but a word', ['example']],
  ])('that resolves to %s is refused', async (_name, answers) => {
    resolveTo(answers);
    for (const all of [true, false]) {
      const { error, found } = await look(all);
      expect(error).toBeInstanceOf(EgressRefused);
      expect(found).toBe('');
    }
  });

  it('that resolves to public addresses only is handed on as it was checked', async () => {
    resolveTo(['1.1.1.1', '2606:4700::1111']);
    const addresses = [
      { address: '1.1.1.1', family: 4 },
      { address: '2606:4700::1111', family: 6 },
    ];
    expect(await look(true)).toEqual({ error: null, found: addresses });
    expect(await look(false)).toEqual({ error: null, found: '1.1.1.1' });
  });

  it('is resolved once a fetch: what was checked is what is connected to', async () => {
    resolveTo(['127.0.0.1'], ['1.1.1.1']);
    const options = { mediaType: MEDIA_TYPE, maxBytes: 100, timeoutMs: 300 };
    await expect(fetchJsonDocument('https://rebound.example/', options)).rejects.toThrow(
      'the name resolves to an address that is not public',
    );
    expect(lookups).toBe(1);
  });

  it('that does not resolve is an error of the resolver', async () => {
    const { error } = await look(true, 'no-such-name.invalid');
    expect(error).not.toBeNull();
    expect(error).not.toBeInstanceOf(EgressRefused);
  });
});
