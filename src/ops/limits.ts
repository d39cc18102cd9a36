import type { Config } from '../config.ts';
import type { Database } from '../db/engine.ts';
import { createMemoryLimiter, createSharedLimiter, unlimited, watchLimiter } from '../http/limiter.ts';
import type { Limiter } from '../http/request.ts';
import { type Clock, DAY } from '../lib/clock.ts';
import { hmacSha256, sha256Text } from '../lib/crypto.ts';
import type { RateSpec } from '../schema/settings.ts';
import type { DaySalts } from './day-salt-service.ts';
import { createSharedCounter } from './rate-store.ts';

/** Clients come back: their hashes of the day are kept, so many at most. */
const MAX_KNOWN = 10_000;

export interface DayHashParts {
  readonly serverSecret: Uint8Array;
  readonly saltOf: DaySalts['saltOf'];
  readonly clock: Clock;
}

/** Hashes what must not be stored raw, under a salt of the day that is deleted with the day. */
export function createDaySalt({ serverSecret, saltOf, clock }: DayHashParts, label: string) {
  let salt: { readonly day: number; readonly key: Uint8Array } = { day: -1, key: new Uint8Array(0) };
  const known = new Map<string, string>();
  return (text: string): string => {
    const day = Math.floor(clock() / DAY);
    if (salt.day !== day || known.size >= MAX_KNOWN) {
      salt = { day, key: hmacSha256(serverSecret, `${label} ${day} ${saltOf(day)}`) };
      known.clear();
    }
    const hashed = known.get(text) ?? hmacSha256(salt.key, text).subarray(0, 16).toString('base64url');
    known.set(text, hashed);
    return hashed;
  };
}

/** One node counts in memory; on PostgreSQL there may be several, and they count together (contract section 8). */
export function createLimiters(config: Config, database: Database, day: DayHashParts) {
  const { clock } = day;
  const count = createSharedCounter(database);
  const shared = database.kind === 'postgres';
  const make = (bucket: string, spec: RateSpec | null): Limiter => {
    if (spec === null) return unlimited;
    return shared ? createSharedLimiter(bucket, spec, count, clock) : createMemoryLimiter(spec);
  };
  const salted = createDaySalt(day, 'gpd/rate/v1');
  const byClient = (limiter: Limiter): Limiter =>
    limiter === unlimited ? unlimited : (address) => limiter(salted(address));
  const { rate_consent_client, rate_consent_withdraw, rate_consent_new } = config;
  return {
    ingest: byClient(make('ingest', config.rate_ingest)),
    /** One bucket for /me and /privacy, by client. */
    privacy: byClient(make('privacy', config.rate_privacy)),
    signIn: {
      limiter: byClient(make('login', config.rate_login)),
      // A row: one node's memory would forget it with a restart, and no other node would know.
      isFirstUse: async (state: string, until: number) =>
        (await count({ bucket: 'login-state', client: sha256Text(state), windowEnds: until })) === 1,
    },
    consent: {
      key: make('consent', config.rate_consent),
      client: watchLimiter(byClient(make('consent-client', rate_consent_client))),
      withdrawal: watchLimiter(byClient(make('consent-withdraw', rate_consent_withdraw))),
      newcomer: byClient(make('consent-new', rate_consent_new)),
    },
  };
}
