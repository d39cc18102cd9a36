import { ORIGIN } from '../../support/constants.ts';
import type { Ask } from '../../support/http.ts';
import { ask, type Reply } from '../../support/http.ts';
import { type Agent, type SignOptions, signedHeaders } from './agent.ts';

/** A request to the shop, as a proxy in front of it describes it to the door. */

export const SHOP = new URL(ORIGIN).host;
export type Headers = Readonly<Record<string, string>>;

/** The headers of a request for `/` of the shop, signed now and valid for a minute. */
export function signNow(by: Agent, options: SignOptions = {}): Headers {
  const now = Math.floor(Date.now() / 1000);
  const params = { created: String(now), expires: String(now + 60), ...options.params };
  const request = { host: SHOP, method: 'GET', target: '/', ...options, params };
  const { host: _, ...headers } = signedHeaders(by, request);
  return headers;
}

export const PROXIED = {
  'x-forwarded-for': '203.0.113.9',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': SHOP,
  'x-forwarded-method': 'GET',
  'x-forwarded-uri': '/',
};

export const checkAt = (base: string, headers: Ask['headers'] = {}): Promise<Reply> =>
  ask(base, '/v1/agents/check', { headers: { ...PROXIED, ...headers } });
