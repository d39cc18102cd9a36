import type { Config } from '../config.ts';
import { DAY, SECOND } from '../lib/clock.ts';
import type { BotAuthRequest } from './message.ts';
import { type BotAuthDeps, verifyBotAuth } from './verify.ts';

/** Longest validity of a Web Bot Auth signature (contract 3.4). */
const MAX_VALIDITY_SECONDS = DAY / SECOND;

/**
 * Names that `@authority` is compared with: the base URL's host and GPD_AUTHORITIES. Without a base URL the server is
 * one of this machine, which is called by several names.
 */
export function publicNames(config: Config, url: string): readonly string[] {
  const { host, port } = new URL(url);
  const local =
    config.base_url === null ? ['localhost', '127.0.0.1', '[::1]'].map((name) => `${name}:${port}`) : [];
  return [host, ...config.authorities, ...local].map((name) => name.toLowerCase().replace(/:443$/, ''));
}

/** The agent that signed a request, or null. */
export type BotAuth = (request: BotAuthRequest, now: number) => Promise<string | null>;

/** @param url where this server is reached, as it is known by then */
export function makeBotAuth(
  config: Config,
  url: () => string,
  world: Pick<BotAuthDeps, 'findKey' | 'claimNonce'>,
): BotAuth {
  const policy = { authorities: () => publicNames(config, url()), maxValiditySeconds: MAX_VALIDITY_SECONDS };
  return (request, now) => {
    const https = request.https || url().startsWith('https:');
    return verifyBotAuth({ ...world, policy }, { ...request, https }, now);
  };
}
