import { describe, expect, it } from 'vitest';
import { post } from '../support/expect.ts';
import { postJson, type Reply } from '../support/http.ts';
import { startProcess } from '../support/process.ts';
import { tell } from './support/size.ts';

/** A limit that a client can step out of by what it writes is none. */

const LIMIT = 5;
const TRIES = 20;
const SETTINGS = { GPD_RATE_INGEST: `${LIMIT}/600`, GPD_RATE_PRIVACY: `${LIMIT}/600` };

type Headers = Readonly<Record<string, string | readonly string[]>>;

/** @returns the number of calls that the limit lets through */
async function through(call: (i: number) => Promise<Reply>): Promise<number> {
  let count = 0;
  for (let i = 0; i < TRIES; i += 1) {
    const { status, headers } = await call(i);
    if (status !== 429) count += 1;
    else expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  }
  return count;
}

const address = (i: number): string => `203.0.113.${i + 1}`;

/** Proxies and clients write these; gpd believes at most the first two, and only from a trusted peer. */
const NAMES = [
  'x-forwarded-for',
  'forwarded',
  'x-real-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'fastly-client-ip',
  'x-forwarded',
  'via',
  'x-originating-ip',
  'x-remote-addr',
];

describe('from a stranger', () => {
  it.each(['ingest', 'privacy'])('no header makes another client of it: %s', async (bucket) => {
    const gpd = await startProcess({ settings: SETTINGS });
    const call = (headers: Headers): Promise<Reply> =>
      bucket === 'ingest' ? post(gpd.url, {}, headers) : postJson(gpd.url, '/me', {}, headers);
    const passed = await through((i) => {
      const name = NAMES[i % NAMES.length] ?? '';
      return call({ [name]: name === 'forwarded' ? `for=${address(i)}` : address(i) });
    });
    expect(passed).toBe(LIMIT);
    await gpd.stop();
  });
});

describe('behind a trusted proxy', () => {
  const rotations: readonly (readonly [string, (i: number) => Headers])[] = [
    ['forged hops left of its own', (i) => ({ 'x-forwarded-for': `${address(i)}, 198.51.100.7` })],
    ['many forged hops', (i) => ({ 'x-forwarded-for': `${`${address(i)}, `.repeat(50)}198.51.100.7` })],
    ['several headers', (i) => ({ 'x-forwarded-for': [address(i), '198.51.100.7'] })],
    ['Forwarded beside it', (i) => ({ 'x-forwarded-for': '198.51.100.7', forwarded: `for=${address(i)}` })],
    ['other ports', (i) => ({ 'x-forwarded-for': `198.51.100.7:${1000 + i}` })],
    ['blanks and spellings', (i) => ({ 'x-forwarded-for': `${' '.repeat(i)}::ffff:198.51.100.7` })],
    ['garbage that names nobody', (i) => ({ 'x-forwarded-for': `garbage-${i}` })],
    [
      'hosts of one IPv6 /64',
      (i) => ({ 'x-forwarded-for': `2001:db8:1:2:${(i * 997).toString(16)}::${i + 1}` }),
    ],
    ['zones and spellings of IPv6', (i) => ({ 'x-forwarded-for': `[2001:DB8:1:2::${i + 1}%eth${i}]:443` })],
  ];
  it.each(rotations)('%s are one client', async (name, headers) => {
    const gpd = await startProcess({ settings: { ...SETTINGS, GPD_TRUSTED_PROXIES: '127.0.0.1/32' } });
    expect(await through((i) => post(gpd.url, {}, headers(i)))).toBe(LIMIT);
    // Somebody else is not locked out by it.
    const other = await post(gpd.url, {}, { 'x-forwarded-for': '2001:db8:1:3::1' });
    expect(other.status).toBe(400);
    tell('rate', `${TRIES} calls with ${name}: ${LIMIT} passed`);
    await gpd.stop();
  });

  it('clients of other networks have limits of their own', async () => {
    const gpd = await startProcess({ settings: { ...SETTINGS, GPD_TRUSTED_PROXIES: '127.0.0.1/32' } });
    const passed = await through((i) =>
      post(gpd.url, {}, { 'x-forwarded-for': `2001:db8:1:${(i + 1).toString(16)}::1` }),
    );
    expect(passed).toBe(TRIES);
    await gpd.stop();
  });
});
