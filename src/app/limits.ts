import type { Config } from '../config.ts';
import type { Limiter } from '../http/hot.ts';
import { makeMemoryLimiter, makeSharedLimiter, unlimited } from '../http/limiter.ts';
import type { Clock } from '../lib/clock.ts';
import type { RateSpec } from '../schema/settings.ts';
import type { Database } from '../storage/db.ts';
import { makeSharedCounter } from '../storage/rate-counter.ts';

export interface Limiters {
  readonly ingest: Limiter;
  readonly consent: Limiter;
}

/** One node counts in memory; on PostgreSQL there may be several, and they count together (contract section 8). */
export function makeLimiters(config: Config, database: Database, clock: Clock): Limiters {
  const count = database.kind === 'postgres' ? makeSharedCounter(database) : null;
  const make = (bucket: string, spec: RateSpec | null): Limiter => {
    if (spec === null) return unlimited;
    return count ? makeSharedLimiter(bucket, spec, count, clock) : makeMemoryLimiter(spec);
  };
  return {
    ingest: make('ingest', config.rate_ingest),
    consent: make('consent', config.rate_consent),
  };
}
