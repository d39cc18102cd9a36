import type { Config } from '../config.ts';
import type { Database } from '../db/engine.ts';
import type { Clock } from '../lib/clock.ts';
import { endsChain } from './decisions-store.ts';
import { type IngestServices, SALT_BYTES } from './ingest.ts';
import type { TenantLookup } from './ports.ts';
import { createRecordRefusal } from './refusals-service.ts';
import type { IngestRouteDeps } from './routes.ts';
import { createSessions, type Updates } from './session.ts';
import { createRecorder } from './store.ts';

/** Connects the ingest: its recorder and sessions, and what its route is handed. */

type HandedOn =
  | 'requireClock'
  | 'proveConsent'
  | 'grants'
  | 'botAuth'
  | 'issueToken'
  | 'noteVisit'
  | 'random';

/** The stores, keys and counters that a server hands to ingest. */
export interface IngestParts
  extends Pick<IngestServices, HandedOn>,
    Omit<IngestRouteDeps, 'services' | 'sessionOf'>,
    Pick<Updates, 'linkedTo'> {
  readonly config: Config;
  readonly database: Database;
  readonly serverSecret: Uint8Array;
  readonly clock: Clock;
  readonly monotonic: () => number;
  readonly tenantOf: TenantLookup;
}

/**
 * @returns what the route is handed, what stores a refusal at the door, and what waits until nothing is being
 * recorded
 */
export function createIngest(parts: IngestParts) {
  const { database, clock, tenantOf, linkedTo } = parts;
  const recorder = createRecorder(database, parts.monotonic);
  const sessions = createSessions(parts.serverSecret);
  const services: IngestServices = {
    ...parts,
    tenants: tenantOf,
    now: clock,
    sessions,
    updates: { linkedTo, endsChain: (kid, requestId) => endsChain(database, kid, requestId) },
    recorder,
  };
  const salt = (): string => parts.random(SALT_BYTES).toString('base64url');
  return {
    route: { ...parts, services, sessionOf: sessions.of },
    recordRefusal: createRecordRefusal(recorder, salt),
    idle: () => recorder.idle(),
  };
}
