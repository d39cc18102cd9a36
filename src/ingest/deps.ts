import { randomBytes } from 'node:crypto';
import { type BotAuthDeps, type FindAgentKey, verifyBotAuth } from '../agents/verify.ts';
import type { Config } from '../config.ts';
import { DAY, SECOND } from '../lib/clock.ts';
import { poolRandom } from '../lib/random.ts';
import type { IngestDeps, TenantLookup } from './ports.ts';

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

export interface IngestParts {
  readonly tenants: TenantLookup;
  readonly findAgentKey: FindAgentKey;
  readonly claimAgentNonce: BotAuthDeps['claimNonce'];
  readonly authorities: () => readonly string[];
  readonly now: IngestDeps['now'];
  readonly leastSkewMs: IngestDeps['leastSkewMs'];
  readonly recorder: IngestDeps['recorder'];
  readonly issueToken: IngestDeps['issueToken'];
  readonly proveConsent: IngestDeps['proveConsent'];
}

/** What the server and `gpd replay` share of the pipeline's needs. */
export function makeIngestDeps(config: Config, parts: IngestParts): IngestDeps {
  const { tenants, recorder, issueToken, proveConsent, now, leastSkewMs } = parts;
  const botAuth = {
    policy: { authorities: parts.authorities, maxValiditySeconds: MAX_VALIDITY_SECONDS },
    findKey: parts.findAgentKey,
    claimNonce: parts.claimAgentNonce,
  };
  return {
    tenants,
    recorder,
    issueToken,
    proveConsent,
    now,
    botAuth: (request, at) => verifyBotAuth(botAuth, request, at),
    random: poolRandom(randomBytes),
    maxSkewMs: config.max_clock_skew * SECOND,
    leastSkewMs,
    epochDays: config.epoch_days,
    attestation: {
      maxNetworksPerDay: config.max_networks_per_day,
      minIdentityBits: config.min_identity_bits,
    },
  };
}
