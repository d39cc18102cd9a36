import dns, { type LookupAddress } from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { isIP, type NetConnectOpts, Socket } from 'node:net';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import { createAgent, quoted } from './support/agent.ts';
import { checkAt, signNow } from './support/door.ts';

/** No `Signature-Agent` that a stranger sends to the door makes gpd connect inside the perimeter, however it is written. */

const gpd = started(() =>
  startGpd({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1', GPD_WBA_OPEN_DISCOVERY: 'true' } }),
);

/** This machine and its surroundings, in spellings that URL parsers know and a header can hold. */
const LITERALS = [
  ...['127.0.0.1', '127.1', '127.0.1', '127.255.255.254', '2130706433', '0x7f000001', '0X7F.1', '0x7f.0.0.1'],
  ...['0177.0.0.1', '017700000001', '0177.0x0.0.1', '127.0.0.1.', '0.0.0.0', '0', '00', '%31%32%37.0.0.1'],
  ...['%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1', '127%E3%80%820%E3%80%820%E3%80%821', '127.0.0.1%2e'],
  ...['10.0.0.1', '0xa.1', '012.0.0.1', '172.16.0.1', '192.168.1.1', '3232235777', '100.64.0.1'],
  ...['169.254.169.254', '0xa9fea9fe', '2852039166', '0251.0376.0251.0376', '169.254.43518', '168.63.129.16'],
  ...['192.0.0.192', '198.18.0.1', '224.0.0.1', '255.255.255.255', '240.0.0.1'],
  ...['[::1]', '[::]', '[0:0:0:0:0:0:0:1]', '[0000::0001]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]'],
  ...['[::FFFF:a9fe:a9fe]', '[0:0:0:0:0:ffff:10.0.0.1]', '[::127.0.0.1]', '[::ffff:0:127.0.0.1]'],
  ...[
    '[64:ff9b::7f00:1]',
    '[64:ff9b:1::7f00:1]',
    '[2002:7f00:1::]',
    '[2001:0:1::]',
    '[fe80::1]',
    '[fec0::1]',
  ],
  ...['[fc00::1]', '[fd00:ec2::254]', '[ff02::1]', '[100::1]', '[2001:db8::1]', '[4000::1]'],
];
/** Names, and what the resolver answers each time it is asked. */
const NAMES: readonly (readonly [name: string, ...answers: (readonly string[])[]])[] = [
  ['localhost', ['127.0.0.1', '::1']],
  ['LOCALHOST.', ['127.0.0.1']],
  ['x.localhost', ['::1']],
  ['localhost.localdomain', ['127.0.0.1']],
  ['%6c%6fcalhost', ['127.0.0.1']],
  ['%EF%BD%8Cocalhost', ['127.0.0.1']],
  ['ip6-loopback', ['::1']],
  ['metadata.google.internal', ['169.254.169.254']],
  ['127.0.0.1.nip.test', ['127.0.0.1']],
  ['xn--bcher-kva.test', ['192.168.0.1']],
  ['mapped.test', ['::ffff:10.0.0.1']],
  ['translated.test', ['64:ff9b::a00:1']],
  ['zone.test', ['fe80::1%eth0']],
  ['both.test', ['1.1.1.1', '10.0.0.1']],
  ['families.test', ['1.1.1.1', '::1']],
  ['rebound.test', ['10.0.0.1'], ['1.1.1.1']],
  ['nothing.test', []],
];
/** Addresses that are no https URL of a key set, so that nobody is even asked for them. */
const NEVER = [
  ...[
    'https://a@never.test/',
    'https://a:b@never.test/',
    'https://never.test@127.0.0.1/',
    'http://never.test/',
  ],
  ...['ftp://never.test/', 'file:///etc/passwd', 'data:application/json,{}', '//never.test/', 'https:///'],
  ...[
    'https://never.test:99999/',
    'https://never .test/',
    'https://[never.test]/',
    'https://256.256.256.256/',
  ],
];
const PUBLIC = [
  ['https://1.1.1.1/', ['1.1.1.1']],
  ['https://[2606:4700::1111]:8443/keys', ['2606:4700::1111']],
  // The addresses that were checked are those that are connected to: a second answer is never asked for.
  ['https://rebinding.test/', ['1.1.1.1']],
] as const;

const answers = new Map<string, (readonly string[])[]>(
  [...NAMES, ['rebinding.test', ['1.1.1.1'], ['10.0.0.1']] as const].map(([name, ...all]) => [
    new URL(`https://${name}/`).hostname,
    [...all],
  ]),
);
const lookups: string[] = [];
/** Addresses that gpd would have connected to; none is let out. */
const connected: string[] = [];

const { lookup } = dns;
const genuine = Object.getOwnPropertyDescriptors(Socket.prototype).connect;
type Resolve = (name: string, options: object, done: (e: Error | null, all: LookupAddress[]) => void) => void;

const resolveTo: Resolve = (name, _options, done) => {
  lookups.push(name);
  const found = answers.get(name)?.shift() ?? [];
  done(
    null,
    found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
  );
};

function noteConnect(this: Socket, ...args: unknown[]): Socket {
  const options = [args[0]].flat()[0] as NetConnectOpts & { host?: string; port?: number };
  if (String(options.port) === String(gpd.port) || options.host === undefined)
    return Reflect.apply(genuine.value as (...all: unknown[]) => Socket, this, args);
  const end = (...addresses: readonly string[]): void => {
    connected.push(...addresses);
    setImmediate(() => this.destroy(new Error('nothing is let out')));
  };
  const resolve = 'lookup' in options ? (options.lookup as Resolve | undefined) : undefined;
  if (isIP(options.host) !== 0 || !resolve) end(options.host);
  else
    resolve(options.host, { all: true }, (error, all) =>
      end(...(error ? [] : all.map((one) => one.address))),
    );
  return this;
}

beforeAll(() => {
  dns.lookup = resolveTo as never;
  Socket.prototype.connect = noteConnect as never;
  syncBuiltinESMExports();
});
afterAll(() => {
  dns.lookup = lookup;
  Object.defineProperty(Socket.prototype, 'connect', genuine);
  syncBuiltinESMExports();
});

const agent = createAgent();
async function name(url: string): Promise<void> {
  const { status, headers } = await checkAt(
    gpd.url,
    signNow(agent, { signatureAgent: `sig1=${quoted(url)}` }),
  );
  expect({ status, found: headers['gpd-agent-status'] }).toEqual({ status: 204, found: 'unverified' });
}

it('connects to public addresses alone, and to those that were checked', async () => {
  for (const url of NEVER) await name(url);
  for (const host of [...LITERALS, ...NAMES.map(([one]) => one)]) await name(`https://${host}/`);
  const before = connected.length;
  await vi.waitFor(() => expect(lookups).toContain('nothing.test'), { timeout: 20_000, interval: 50 });
  expect({ before, connected }).toEqual({ before: 0, connected: [] });
  for (const [url] of PUBLIC) await name(url);
  const expected = PUBLIC.flatMap(([, addresses]) => addresses);
  await vi.waitFor(() => expect(connected).toEqual(expected), { timeout: 20_000, interval: 50 });
  // Each name was asked for once, so its second answer was never seen, and the others not at all.
  expect(lookups.filter((one) => one === 'rebinding.test')).toHaveLength(1);
  expect(lookups.toSorted()).toEqual([...answers.keys()].toSorted());
});
