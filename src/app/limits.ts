import type { Config } from '../config.ts';
import type { Limiter } from '../http/hot.ts';
import { makeMemoryLimiter, makeSharedLimiter, unlimited } from '../http/limiter.ts';
import { type Clock, DAY } from '../lib/clock.ts';
import { hmacSha256 } from '../lib/hash.ts';
import type { RateSpec } from '../schema/settings.ts';
import type { Database } from '../storage/db.ts';
import { makeSharedCounter } from '../storage/rate-counter.ts';

export interface Limiters {
  readonly ingest: Limiter;
  readonly consent: Limiter;
}

/** Client addresses are counted under a salt of the day: what a counter's key was is forgotten with the salt. */
function saltKeys(limiter: Limiter, serverSecret: Uint8Array, clock: Clock): Limiter {
  let salt: { readonly day: number; readonly key: Uint8Array } = { day: -1, key: new Uint8Array(0) };
  return (address) => {
    const day = Math.floor(clock() / DAY);
    if (salt.day !== day) salt = { day, key: hmacSha256(serverSecret, `gpd/rate/v1 ${day}`) };
    return limiter(hmacSha256(salt.key, address).toString('base64url'));
  };
}

/** One node counts in memory; on PostgreSQL there may be several, and they count together (contract section 8). */
export function makeLimiters(
  config: Config,
  database: Database,
  serverSecret: Uint8Array,
  clock: Clock,
): Limiters {
  const count = database.kind === 'postgres' ? makeSharedCounter(database) : null;
  const make = (bucket: string, spec: RateSpec | null): Limiter => {
    if (spec === null) return unlimited;
    return count ? makeSharedLimiter(bucket, spec, count, clock) : makeMemoryLimiter(spec);
  };
  return {
    ingest: saltKeys(make('ingest', config.rate_ingest), serverSecret, clock),
    consent: make('consent', config.rate_consent),
  };
}
