import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { type Clock, SECOND } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import type { RateSpec } from '../schema/settings.ts';
import type { Limiter } from './request.ts';

/**
 * Bounds the requests that a lane works on. Past it a request is refused at the price of reading it: without a bound, a
 * turn of the event loop opens all that arrived during the turn before, and each takes longer than the last. Asked once
 * the body is there, so that who sends slowly holds no place.
 */
export type ConcurrencyLimit = ReturnType<typeof makeConcurrencyLimit>;

/**
 * What a lane works on at once. Half a second of bundles on two processors, and yet three seconds on a machine with a
 * sixth of that: nobody waits longer for an answer, and batches of 400 are full long before.
 */
export const MAX_UNDER_WAY = 1000;

export function makeConcurrencyLimit(places = MAX_UNDER_WAY) {
  let held = 0;
  return {
    isFull: () => held >= places,
    /** Holds a place until the work that began is done, however it ends. */
    hold<Result>(work: Promise<Result>) {
      held += 1;
      return work.finally(() => {
        held -= 1;
      });
    },
  };
}

/**
 * Bounds what reads a whole trail or log: so many at a time for one key, a tenant or a client. One that ends, however it
 * ends, makes room.
 */
export function makeReadWhole(places: number) {
  const held = new Map<string, number>();
  /** @param refusal to be thrown where all places of the key are taken */
  return async <Result>(key: string, work: () => Promise<Result>, refusal: () => Error): Promise<Result> => {
    const others = held.get(key) ?? 0;
    if (others >= places) throw refusal();
    held.set(key, others + 1);
    try {
      return await work();
    } finally {
      const left = (held.get(key) ?? 1) - 1;
      if (left > 0) held.set(key, left);
      else held.delete(key);
    }
  };
}

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

/** Counts hits over all nodes and answers the total in their window. */
export type SharedCounter = (hit: {
  readonly bucket: string;
  readonly client: string;
  readonly windowEnds: number;
  /** One, where it is left out. */
  readonly hits?: number;
}) => Promise<number>;

/** A node counts a thousandth of a large limit ahead, a hundred hits at most: what it does not use of them nobody can. */
const leaseOf = ({ points }: RateSpec): number => Math.max(1, Math.min(100, Math.floor(points / 1000)));

/** Several nodes: counters in the database, in windows that all nodes agree on. */
export function makeSharedLimiter(
  bucket: string,
  spec: RateSpec,
  count: SharedCounter,
  clock: Clock,
): Limiter {
  const windowMs = spec.seconds * 1000;
  const hits = leaseOf(spec);
  const leases = new Map<string, { readonly windowEnds: number; left: number }>();
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
      if (leases.size >= MAX_SPENT) leases.clear();
      // Others of the same turn may have leased meanwhile.
      const known = leases.get(client);
      const left = known?.windowEnds === windowEnds ? known.left : 0;
      leases.set(client, { windowEnds, left: left + granted - 1 });
    }
    return 0;
  };
}
