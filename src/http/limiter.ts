import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { type Clock, SECOND } from '../lib/clock.ts';
import { createBounded } from '../lib/collections.ts';
import { Refusal } from '../lib/errors.ts';
import type { RateSpec } from '../schema/settings.ts';
import type { Limiter } from './request.ts';

/**
 * Bounds the requests that a hot route serves at once. Without a bound each turn of the event loop opens all
 * requests of the turn before, and each takes longer. A slow sender takes no place: admission is asked when
 * the body has arrived.
 */
export type ConcurrencyLimit = ReturnType<typeof createConcurrencyLimit>;

/**
 * The bound of a hot route: half a second of bundles on two processors, three seconds on a sixth of that.
 * Nobody waits longer for an answer, and batches of 400 are full long before.
 */
export const MAX_UNDER_WAY = 1000;

/** Made once: under overload the stack of each new one would be a part of the cost of a refusal. */
export const FULL = new Refusal('unavailable', { headers: { 'retry-after': '1' } });

export function createConcurrencyLimit(places = MAX_UNDER_WAY) {
  let servedCount = 0;
  return {
    isFull: () => servedCount >= places,
    /**
     * Takes a place, which `leave` gives back.
     * @throws {Refusal} `unavailable`: after a second there is one, or the server is too small
     */
    enter() {
      if (servedCount >= places) throw FULL;
      servedCount += 1;
    },
    leave() {
      servedCount -= 1;
    },
  };
}

/** Bounds reads of a whole trail or log: this many at once per key (a tenant or a client). */
export function createPlaces(places: number) {
  const running = new Map<string, number>();
  /**
   * @param refusal makes the error when all places of the key are taken
   * @returns gives the place back; to be called once
   */
  return (key: string, refusal: () => Error): (() => void) => {
    const runningHere = running.get(key) ?? 0;
    if (runningHere >= places) throw refusal();
    running.set(key, runningHere + 1);
    return () => {
      const remaining = (running.get(key) ?? 1) - 1;
      if (remaining > 0) running.set(key, remaining);
      else running.delete(key);
    };
  };
}

/** Bounds work as `createPlaces` does, and gives the place back when it is done. */
export function createReadWhole(places: number) {
  const takePlace = createPlaces(places);
  return async <Result>(key: string, work: () => Promise<Result>, refusal: () => Error): Promise<Result> => {
    const leave = takePlace(key, refusal);
    try {
      return await work();
    } finally {
      leave();
    }
  };
}

const seconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1000));

/** GPD_RATE_* set to `off`. */
export const unlimited: Limiter = () => Promise.resolve(0);

/** @param wait seconds, from a limiter. @throws {Refusal} `rate-limited` unless it is 0 */
export function refuseOver(wait: number): void {
  if (wait > 0) throw new Refusal('rate-limited', { headers: { 'retry-after': String(wait) } });
}

/** @throws {Refusal} `rate-limited` */
export async function charge(limiter: Limiter, key: string): Promise<void> {
  refuseOver(await limiter(key));
}

export type WatchedLimiter = ReturnType<typeof watchLimiter>;

const MAX_SPENT = 10_000;

/**
 * Remembers clients that are over their limit: until their window ends they cost no counter and no look-up.
 */
export function watchLimiter(limiter: Limiter, now: () => number = () => performance.now()) {
  const blockedUntil = createBounded<number>(MAX_SPENT);
  function secondsBlocked(key: string): number {
    const remainingMs = (blockedUntil.get(key) ?? 0) - now();
    return remainingMs > 0 ? seconds(remainingMs) : 0;
  }
  return {
    /** Seconds that a client over its limit still has to wait; charges nothing, and 0 for everyone else. */
    spent: secondsBlocked,
    charge: async (key: string) => {
      const blockedFor = secondsBlocked(key);
      if (blockedFor > 0) return blockedFor;
      const wait = await limiter(key);
      if (wait === 0) return 0;
      blockedUntil.set(key, now() + wait * SECOND);
      return wait;
    },
  };
}

/** Counts in memory, for a single node. */
export function createMemoryLimiter(spec: RateSpec): Limiter {
  const limiter = new RateLimiterMemory({ points: spec.points, duration: spec.seconds });
  return async (key) => {
    try {
      await limiter.consume(key);
      return 0;
    } catch (error) {
      // A window never lasts longer than its spec, even if the clock was set.
      if (error instanceof RateLimiterRes) return Math.min(seconds(error.msBeforeNext), spec.seconds);
      throw error;
    }
  };
}

/** Counts hits over all nodes and returns the total of their window. */
export type SharedCounter = (hit: {
  readonly bucket: string;
  readonly client: string;
  readonly windowEnds: number;
  /** Defaults to 1. */
  readonly hits?: number;
}) => Promise<number>;

/**
 * A node reserves a thousandth of a large limit ahead, at most a hundred hits. Nobody can use what it leaves.
 */
const leaseOf = ({ points }: RateSpec): number => Math.max(1, Math.min(100, Math.floor(points / 1000)));

/** Counts in the database, for several nodes, in windows that all nodes agree on. */
export function createSharedLimiter(
  bucket: string,
  spec: RateSpec,
  count: SharedCounter,
  clock: Clock,
): Limiter {
  const windowMs = spec.seconds * 1000;
  const hits = leaseOf(spec);
  const leases = createBounded<{ readonly windowEnds: number; left: number }>(MAX_SPENT);
  return async (client) => {
    const now = clock();
    const windowEnds = (Math.floor(now / windowMs) + 1) * windowMs;
    const present = leases.get(client);
    if (present?.windowEnds === windowEnds && present.left > 0) {
      present.left -= 1;
      return 0;
    }
    const total = await count({ bucket, client, windowEnds, hits });
    const granted = Math.min(hits, spec.points - total + hits);
    if (granted <= 0) return seconds(windowEnds - now);
    if (granted > 1) {
      // Other requests of the same turn may have leased meanwhile.
      const lease = leases.get(client);
      const unused = lease?.windowEnds === windowEnds ? lease.left : 0;
      leases.set(client, { windowEnds, left: unused + granted - 1 });
    }
    return 0;
  };
}
