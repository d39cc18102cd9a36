import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { Clock } from '../lib/clock.ts';
import type { RateSpec } from '../schema/settings.ts';
import type { Limiter } from './hot.ts';

const seconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1000));

/** GPD_RATE_* set to `off`. */
export const unlimited: Limiter = () => Promise.resolve(0);

/** One node: counters in memory. */
export function makeMemoryLimiter(spec: RateSpec): Limiter {
  const limiter = new RateLimiterMemory({ points: spec.points, duration: spec.seconds });
  return async (key) => {
    try {
      await limiter.consume(key);
      return 0;
    } catch (error) {
      // A window lasts no longer than its spec, whatever the clock has done since it began.
      if (error instanceof RateLimiterRes) return Math.min(seconds(error.msBeforeNext), spec.seconds);
      throw error;
    }
  };
}

/** Counts a hit over all nodes and answers the total in its window. */
export type SharedCounter = (hit: {
  readonly bucket: string;
  readonly client: string;
  readonly windowEnds: number;
}) => Promise<number>;

/** Several nodes: counters in the database, in windows that all nodes agree on. */
export function makeSharedLimiter(
  bucket: string,
  spec: RateSpec,
  count: SharedCounter,
  clock: Clock,
): Limiter {
  const windowMs = spec.seconds * 1000;
  return async (client) => {
    const now = clock();
    const windowEnds = (Math.floor(now / windowMs) + 1) * windowMs;
    const total = await count({ bucket, client, windowEnds });
    return total <= spec.points ? 0 : seconds(windowEnds - now);
  };
}
