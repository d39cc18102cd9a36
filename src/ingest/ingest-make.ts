import type { Config } from '../config.ts';
import type { Database } from '../db/db.ts';
import { makeConcurrencyLimit } from '../http/limiter.ts';
import type { Limiter } from '../http/request.ts';
import { type Clock, SECOND } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import type { KeyUseCounter } from '../tenants/key-use-service.ts';
import { endsChain } from './decisions-store.ts';
import type { Decryptor } from './decrypt/decrypt-worker.ts';
import { ingest } from './ingest.ts';
import { type IngestLaneDeps, makeIngestLane } from './lane.ts';
import type { IngestDeps, TenantLookup, Updates } from './ports.ts';
import { makeSessions } from './session.ts';
import { makeRecorder } from './store.ts';

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

export interface IngestPlatform extends Pick<IngestLaneDeps, 'knowsOrigin' | 'onFault'> {
  readonly config: Config;
  readonly database: Database;
  readonly serverSecret: Uint8Array;
  readonly clock: Clock;
  readonly monotonic: () => number;
  readonly random: Random;
  readonly decryptor: Pick<Decryptor, 'open'>;
  readonly ingestTenantOf: TenantLookup;
  readonly limiters: { readonly ingest: Limiter };
  readonly address: { readonly url: string };
  readonly keyUse: Pick<KeyUseCounter, 'noteVisit'>;
}

export interface IngestNeeds
  extends Pick<IngestDeps, 'requireClock' | 'proveConsent' | 'grants' | 'botAuth' | 'issueToken'>,
    Pick<Updates, 'linkedTo'>,
    Pick<IngestLaneDeps, 'isHosting' | 'markNetwork'> {
  /** The same function, with its answers counted. */
  readonly counted: (run: IngestLaneDeps['ingest']) => IngestLaneDeps['ingest'];
}

/** POST /_fp/i/v1 of a server. */
export function makeIngest(platform: IngestPlatform, needs: IngestNeeds) {
  const { config, database, address } = platform;
  const recorder = makeRecorder(database, platform.monotonic);
  const sessions = makeSessions(platform.serverSecret);
  const deps = makeIngestDeps(config, {
    ...needs,
    random: platform.random,
    sessions,
    updates: {
      linkedTo: needs.linkedTo,
      endsChain: (kid, requestId) => endsChain(database, kid, requestId),
    },
    tenants: platform.ingestTenantOf,
    now: platform.clock,
    noteVisit: platform.keyUse.noteVisit,
    recorder,
  });
  const publicHttps = address.url.startsWith('https:');
  const run: IngestLaneDeps['ingest'] = (unsealed, input) =>
    ingest(deps, unsealed, publicHttps && !input.https ? { ...input, https: true } : input);
  const lane = makeIngestLane({
    open: platform.decryptor.open,
    ingest: needs.counted(run),
    limiter: platform.limiters.ingest,
    admission: makeConcurrencyLimit(),
    knowsOrigin: platform.knowsOrigin,
    mayRead: (kid, origin) => {
      const tenant = platform.ingestTenantOf(kid);
      return tenant ? tenant.origins.has(origin) : platform.knowsOrigin(origin);
    },
    sessionOf: sessions.of,
    isHosting: needs.isHosting,
    markNetwork: needs.markNetwork,
    onFault: platform.onFault,
  });
  return { lane, idle: () => recorder.idle() };
}
