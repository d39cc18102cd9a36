import type { Config } from '../config.ts';
import type { Database } from '../db/db.ts';
import { makeConcurrencyLimit } from '../http/limiter.ts';
import { type Clock, SECOND } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import { ingest } from './ingest.ts';
import { type IngestLaneDeps, makeIngestLane } from './lane.ts';
import type { IngestDeps, TenantLookup, Updates } from './ports.ts';
import { makeRecorder } from './record-batch.ts';
import { makeSessions } from './session.ts';
import { endsChain } from './stored.ts';

/** What a server and `gpd replay` each bring. */
type IngestParts = Omit<IngestDeps, 'maxSkewMs' | 'epochDays' | 'attestation' | 'collisionRisk'>;

/** What the server and `gpd replay` share of the pipeline's needs. */
export function makeIngestDeps(config: Config, parts: IngestParts): IngestDeps {
  return {
    ...parts,
    maxSkewMs: config.max_clock_skew * SECOND,
    epochDays: config.epoch_days,
    attestation: {
      maxNetworksPerDay: config.max_networks_per_day,
      minIdentityBits: config.min_identity_bits,
    },
    collisionRisk: config.collision_risk,
  };
}

export interface IngestNeeds
  extends Pick<
      IngestDeps,
      'requireClock' | 'proveConsent' | 'grants' | 'botAuth' | 'issueToken' | 'noteVisit'
    >,
    Pick<IngestLaneDeps, 'open' | 'limiter' | 'knowsOrigin' | 'isHosting' | 'markNetwork' | 'onFault'> {
  readonly config: Config;
  readonly database: Database;
  readonly serverSecret: Uint8Array;
  readonly clock: Clock;
  /** Milliseconds that no clock change touches. */
  readonly monotonic: () => number;
  readonly random: Random;
  readonly tenantOf: TenantLookup;
  readonly linkedTo: Updates['linkedTo'];
  /** The public origin is https, also where a proxy terminates TLS. */
  readonly publicHttps: boolean;
  /** The same function, with its answers counted. */
  readonly counted: (run: IngestLaneDeps['ingest']) => IngestLaneDeps['ingest'];
}

/** POST /_fp/i/v1 of a server. */
export function createIngest(needs: IngestNeeds) {
  const { config, database, tenantOf, knowsOrigin } = needs;
  const recorder = makeRecorder(database, needs.monotonic);
  const sessions = makeSessions(needs.serverSecret);
  const deps = makeIngestDeps(config, {
    requireClock: needs.requireClock,
    proveConsent: needs.proveConsent,
    grants: needs.grants,
    botAuth: needs.botAuth,
    issueToken: needs.issueToken,
    noteVisit: needs.noteVisit,
    random: needs.random,
    sessions,
    updates: {
      linkedTo: needs.linkedTo,
      endsChain: (kid, requestId) => endsChain(database, kid, requestId),
    },
    tenants: tenantOf,
    now: needs.clock,
    recorder,
  });
  const run: IngestLaneDeps['ingest'] = (unsealed, input) =>
    ingest(deps, unsealed, needs.publicHttps && !input.https ? { ...input, https: true } : input);
  const lane = makeIngestLane({
    open: needs.open,
    ingest: needs.counted(run),
    limiter: needs.limiter,
    admission: makeConcurrencyLimit(),
    knowsOrigin,
    mayRead: (kid, origin) => {
      const tenant = tenantOf(kid);
      return tenant ? tenant.origins.has(origin) : knowsOrigin(origin);
    },
    sessionOf: sessions.of,
    isHosting: needs.isHosting,
    markNetwork: needs.markNetwork,
    onFault: needs.onFault,
  });
  return { lane, idle: () => recorder.idle() };
}
