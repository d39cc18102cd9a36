import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { type Clock, SECOND } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import type { RateSpec } from '../schema/setting-kinds.ts';
import type { Limiter } from './hot.ts';

const seconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1000));

/** GPD_RATE_* set to `off`. */
export const unlimited: Limiter = () => Promise.resolve(0);

/** @param wait seconds, as a limiter answers them. @throws {Refusal} `rate-limited` unless it is 0 */
export function refuseOver(wait: number): void {
  if (wait > 0) throw new Refusal('rate-limited', { headers: { 'retry-after': String(wait) } });
}

/** @throws {Refusal} `rate-limited` */
export async function charge(limiter: Limiter, key: string): Promise<void> {
  refuseOver(await limiter(key));
}

export type WatchedLimiter = ReturnType<typeof watchLimiter>;

const MAX_SPENT = 10_000;

/** Remembers who is over the limit: they cost neither a counter nor a look-up until their window ends. */
export function watchLimiter(limiter: Limiter, now: () => number = () => performance.now()) {
  const until = new Map<string, number>();
  function spent(key: string): number {
    const left = (until.get(key) ?? 0) - now();
    if (left > 0) return seconds(left);
    until.delete(key);
    return 0;
  }
  return {
    /** Seconds that a client over its limit still has to wait; charges nothing, and 0 for everyone else. */
    spent,
    charge: async (key: string) => {
      const known = spent(key);
      if (known > 0) return known;
      const wait = await limiter(key);
      if (wait === 0) return 0;
      if (until.size >= MAX_SPENT) until.clear();
      until.set(key, now() + wait * SECOND);
      return wait;
    },
  };
}

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
