import type { Config } from '../config.ts';
import type { Database } from '../db/engine.ts';
import { createMemoryLimiter, createSharedLimiter, unlimited, watchLimiter } from '../http/limiter.ts';
import type { Limiter } from '../http/request.ts';
import { type Clock, DAY } from '../lib/clock.ts';
import { createBounded } from '../lib/collections.ts';
import { hmacSha256, sha256Text } from '../lib/crypto.ts';
import type { RateSpec } from '../schema/settings.ts';
import type { DaySalts } from './day-salt-store.ts';
import { createSharedCounter } from './rate-store.ts';

/** The rate limits of all routes, and the daily hashes of client addresses that they count by. */

/** Hashes of clients that are kept, because most clients send several requests. */
const MAX_HASHES = 10_000;
/** Rows of all tenants' policies that limit a rate. */
const MAX_ROWS = 1000;

export interface DayHashParts {
  readonly serverSecret: Uint8Array;
  readonly saltOf: DaySalts['saltOf'];
  readonly clock: Clock;
}

/**
 * @returns a function that hashes texts which must not be stored raw, under a salt that is deleted with its
 * day
 */
export function createDayHash({ serverSecret, saltOf, clock }: DayHashParts, label: string) {
  const begin = (salt: string) => ({
    salt,
    key: hmacSha256(serverSecret, salt),
    hashes: createBounded<string>(MAX_HASHES),
  });
  let current = begin('');
  return (text: string): string => {
    const day = Math.floor(clock() / DAY);
    const salt = `${label} ${day} ${saltOf(day)}`;
    if (current.salt !== salt) current = begin(salt);
    const { key, hashes } = current;
    const found = hashes.get(text);
    if (found !== undefined) return found;
    const hash = hmacSha256(key, text).subarray(0, 16).toString('base64url');
    hashes.set(text, hash);
    return hash;
  };
}

/**
 * On SQLite there is one node, which counts in memory. On PostgreSQL all nodes share their counts (contract
 * section 8).
 */
export function createLimiters(config: Config, database: Database, day: DayHashParts) {
  const { clock } = day;
  const count = createSharedCounter(database);
  const isShared = database.kind === 'postgres';
  const createLimiter = (bucket: string, spec: RateSpec | null): Limiter => {
    if (spec === null) return unlimited;
    return isShared ? createSharedLimiter(bucket, spec, count, clock) : createMemoryLimiter(spec);
  };
  const hashClient = createDayHash(day, 'gpd/rate/v1');
  const limitByClient = (limiter: Limiter): Limiter =>
    limiter === unlimited ? unlimited : (address) => limiter(hashClient(address));
  // Each node counts alone: scripts have to be served while the database is away, and cost it nothing.
  const publicLimiter =
    config.rate_public === null ? unlimited : limitByClient(createMemoryLimiter(config.rate_public));
  const { rate_consent_client, rate_consent_withdraw, rate_consent_new } = config;
  const rows = createBounded<Limiter>(MAX_ROWS);
  return {
    /** The limiter of a row of a policy for agents. @param rate COUNT/SECONDS */
    rowOf(bucket: string, rate: string): Limiter {
      const [points = 0, seconds = 0] = rate.split('/').map(Number);
      const name = `${bucket} ${rate}`;
      const limiter = rows.get(name) ?? limitByClient(createLimiter(name, { points, seconds }));
      rows.set(name, limiter);
      return limiter;
    },
    ingest: limitByClient(createLimiter('ingest', config.rate_ingest)),
    privacy: limitByClient(createLimiter('privacy', config.rate_privacy)),
    public: publicLimiter,
    signIn: {
      limiter: limitByClient(createLimiter('login', config.rate_login)),
      // Counted in the database on SQLite too: memory would forget a used state at a restart.
      isFirstUse: async (state: string, until: number) =>
        (await count({ bucket: 'login-state', client: sha256Text(state), windowEnds: until })) === 1,
    },
    consent: {
      key: createLimiter('consent', config.rate_consent),
      client: watchLimiter(limitByClient(createLimiter('consent-client', rate_consent_client))),
      withdrawal: watchLimiter(limitByClient(createLimiter('consent-withdraw', rate_consent_withdraw))),
      state: watchLimiter(limitByClient(createLimiter('consent-state', rate_consent_client))),
      anonymous: publicLimiter,
      newcomer: limitByClient(createLimiter('consent-new', rate_consent_new)),
    },
  };
}
