import { randomBytes } from 'node:crypto';
import type { Config } from './config.ts';
import { type Consent, createConsent } from './consent/create-consent.ts';
import type { Database } from './db/engine.ts';
import type { Clock } from './lib/clock.ts';
import type { Random } from './lib/crypto.ts';
import { type CheckpointBook, createCheckpointBook } from './log/checkpoint-files.ts';
import type { WitnessPolicy } from './log/checkpoint-service.ts';
import { createLogService, type LogService } from './log/service.ts';
import { createRights, type Rights } from './rights/create-rights.ts';
import { createDirectory, type TenantDirectory } from './tenants/directory.ts';
import { openStore, type Store } from './tenants/installation-files.ts';
import { createKeyUseCounter, type KeyUseCounter } from './tenants/key-use-service.ts';
import { readSnapshot } from './tenants/snapshot-store.ts';

/** The parts of gpd over one open database: the server, the console, a command and a test are all handed this. */
export interface Services {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly database: Database;
  readonly serverSecret: Uint8Array;
  /** Empty until `loadTenants`, or until a server has polled. */
  readonly tenants: TenantDirectory;
  /** Counts which seal key opened a bundle. */
  readonly keyUse: KeyUseCounter;
  /** The checkpoints that were signed, outside the database. */
  readonly book: CheckpointBook;
  readonly log: LogService;
  readonly consent: Consent;
  readonly rights: Rights;
}

export interface ServiceOptions {
  /** A database that is open already; without it, the one of the configuration is opened. */
  readonly store?: Store;
  readonly clock?: Clock | undefined;
  readonly random?: Random;
  /** A COMMIT failed with an unknown outcome: the process must not go on. */
  readonly onUnknownCommit?: (error: Error) => void;
  readonly witnesses?: WitnessPolicy;
  /** Gets the error that held up an erasure whose rows are gone; the job finishes it. */
  readonly onErasureFault?: (error: unknown) => void;
  /** Milliseconds that an answer waits for an erasure; a command waits without a limit. */
  readonly patienceMs?: number;
}

const rethrow = (error: unknown): never => {
  throw error;
};

/** @throws {ConfigError} with a plain sentence */
export async function createServices(config: Config, options: ServiceOptions = {}): Promise<Services> {
  const { clock = Date.now, random = randomBytes, onUnknownCommit, witnesses } = options;
  const store = options.store ?? (await openStore(config, onUnknownCommit ? { onUnknownCommit } : {}));
  const { database, masterKey, serverSecret } = store;
  const keyUse = createKeyUseCounter(database, clock);
  const tenants = createDirectory({ masterKey, clock, random, onOpened: keyUse.note });
  const book = createCheckpointBook(config.data_dir, serverSecret);
  return {
    config,
    clock,
    random,
    database,
    serverSecret,
    tenants,
    keyUse,
    book,
    log: createLogService({
      database,
      book,
      keysOf: tenants.find,
      clock,
      ...(witnesses ? { witnesses } : {}),
    }),
    consent: createConsent(database, clock, random),
    rights: createRights({
      config,
      database,
      serverSecret,
      tenantOf: tenants.find,
      clock,
      random,
      onErasureFault: options.onErasureFault ?? rethrow,
      patienceMs: options.patienceMs,
    }),
  };
}

/** Reads all tenants once. One whose rows are damaged is left out: `gpd doctor` names it. */
export async function loadTenants({ database, tenants }: Services): Promise<void> {
  tenants.apply(await readSnapshot(database, -1), tenants.masterKey());
}
