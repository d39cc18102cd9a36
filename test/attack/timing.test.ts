import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, bearer, PURPOSE, startApiProcess } from '../consent/app/support/api.ts';
import { postJson } from '../support/http.ts';
import { sized, tell } from './support/size.ts';

/**
 * Does a refusal take longer the more of a secret was right? Reported, not asserted: a busy machine would decide. What is
 * asserted is that every guess is refused alike. Keys and session tokens are looked up by their SHA-256, so that there is
 * no comparison which could stop early. One client's unknown keys are looked up once a second: each guess is another client's.
 */

const ROUNDS = sized(150, 20_000);

let api: Api;
let session = '';
beforeAll(async () => {
  api = await startApiProcess({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1/32' } });
  session = await api.session('u-1');
});
afterAll(() => api.stop());

const middle = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;

/** Each in another network: addresses of one /64 are one client. */
const address = (): string => `2001:db8:${randomBytes(4).toString('hex').replace(/.{4}/, '$&:')}::1`;

/** A guess whose first characters are right, and the next one is not: of two characters one in 4,096 guesses is the secret. */
function guess(secret: string, right: number): string {
  let randomText = randomBytes(64).toString('base64url');
  while (randomText[0] === secret[right]) randomText = randomText.slice(1);
  return secret.slice(0, right) + randomText.slice(0, secret.length - right);
}

it.each(['API key', 'session token'])(
  'a guessed %s is refused alike, however much of it is right',
  async (credential) => {
    const secret = credential === 'API key' ? api.keys.secret : session;
    const prefix = 7;
    const kinds = { none: prefix, half: prefix + 21, 'all but two characters': secret.length - 2 };
    const times = new Map<string, number[]>(Object.keys(kinds).map((name) => [name, []]));
    const answers = new Set<string>();
    for (let round = 0; round < ROUNDS; round += 1) {
      // In turns, so that what else the machine does falls on all alike.
      const order = Object.entries(kinds);
      order.push(...order.splice(0, round % order.length));
      for (const [name, right] of order) {
        const token = guess(secret, right);
        const client = { 'x-forwarded-for': address() };
        const startedAt = performance.now();
        const reply = await postJson(
          api.gpd.url,
          '/v1/consent/state',
          { principalId: 'u-1', purpose: PURPOSE },
          { ...bearer(token), ...client },
        );
        times.get(name)?.push(performance.now() - startedAt);
        answers.add(`${reply.status} ${reply.text} ${reply.headers['www-authenticate']}`);
      }
    }
    const words = [...times].map(([name, all]) => `${name} right ${(middle(all) * 1000).toFixed(0)} µs`);
    tell('timing', `${credential}, median of ${ROUNDS}: ${words.join(', ')}`);
    expect([...answers]).toHaveLength(1);
    expect([...answers][0]).toMatch(/^401 /);
  },
  sized(60_000, 1_800_000),
);
