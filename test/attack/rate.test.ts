import { expect, it } from 'vitest';
import { post } from '../support/expect.ts';
import { postJson, type Reply } from '../support/http.ts';
import { startProcess } from '../support/process.ts';

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
  ...['x-forwarded-for', 'forwarded', 'x-real-ip', 'true-client-ip', 'cf-connecting-ip', 'x-client-ip'],
  ...['x-cluster-client-ip', 'fastly-client-ip', 'x-forwarded', 'via', 'x-originating-ip', 'x-remote-addr'],
];

it('no header makes another client of a stranger', async () => {
  const gpd = await startProcess({ settings: SETTINGS });
  const headers = (i: number): Headers => {
    const name = NAMES[i % NAMES.length] ?? '';
    return { [name]: name === 'forwarded' ? `for=${address(i)}` : address(i) };
  };
  expect(await through((i) => post(gpd.url, {}, headers(i)))).toBe(LIMIT);
  expect(await through((i) => postJson(gpd.url, '/me', {}, headers(i)))).toBe(LIMIT);
  await gpd.stop();
});

/** Each has a client of its own, given by its number. */
const ROTATIONS: readonly (readonly [string, (i: number, client: string) => Headers])[] = [
  ['forged hops left of its own', (i, self) => ({ 'x-forwarded-for': `${address(i)}, ${self}` })],
  ['many forged hops', (i, self) => ({ 'x-forwarded-for': `${`${address(i)}, `.repeat(50)}${self}` })],
  ['several headers', (i, self) => ({ 'x-forwarded-for': [address(i), self] })],
  ['Forwarded beside it', (i, self) => ({ 'x-forwarded-for': self, forwarded: `for=${address(i)}` })],
  ['other ports', (i, self) => ({ 'x-forwarded-for': `${self}:${1000 + i}` })],
  ['blanks and spellings', (i, self) => ({ 'x-forwarded-for': `${' '.repeat(i)}::ffff:${self}` })],
  ['garbage that names nobody', (i) => ({ 'x-forwarded-for': `garbage-${i}` })],
  ['hosts of one IPv6 /64', (i) => ({ 'x-forwarded-for': `2001:db8:1:2:${(i * 997).toString(16)}::1` })],
  ['zones and spellings of IPv6', (i) => ({ 'x-forwarded-for': `[2001:DB8:1:3::${i + 1}%eth${i}]:443` })],
];

it('what a client writes behind a trusted proxy leaves it one client, and locks nobody else out', async () => {
  const gpd = await startProcess({ settings: { ...SETTINGS, GPD_TRUSTED_PROXIES: '127.0.0.1/32' } });
  for (const [client, [name, headers]] of ROTATIONS.entries()) {
    const passed = await through((i) => post(gpd.url, {}, headers(i, `198.51.100.${client + 1}`)));
    expect({ name, passed }).toEqual({ name, passed: LIMIT });
  }
  const networks = (i: number): Headers => ({ 'x-forwarded-for': `2001:db8:1:${(i + 16).toString(16)}::1` });
  expect(await through((i) => post(gpd.url, {}, networks(i)))).toBe(TRIES);
  await gpd.stop();
});
