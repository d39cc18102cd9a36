import { randomBytes } from 'node:crypto';
import type { Config } from './config.ts';
import { type Consent, createConsent } from './consent/create-consent-service.ts';
import type { Clock } from './lib/clock.ts';
import type { Random } from './lib/crypto.ts';
import { type CheckpointBook, createCheckpointBook } from './log/checkpoint-files.ts';
import type { WitnessPolicy } from './log/checkpoint-service.ts';
import { createLogService, type LogService } from './log/service.ts';
import { createRights, type Rights } from './rights/create-rights-service.ts';
import { createDirectory, type Installation } from './tenants/directory.ts';
import { openStore, type Store } from './tenants/installation-files.ts';
import { createKeyUseCounter } from './tenants/key-use-store.ts';
import { readSnapshot } from './tenants/snapshot-store.ts';

/**
 * Builds the services of all features over one open database. The server, commands and tests start from here.
 */

export interface Services extends Installation {
  /** The signed checkpoints, in files outside the database. */
  readonly book: CheckpointBook;
  readonly log: LogService;
  readonly consent: Consent;
  readonly rights: Rights;
}

export interface ServiceOptions {
  /** An open database to use instead of the configured one. */
  readonly store?: Store;
  readonly clock?: Clock | undefined;
  readonly random?: Random;
  /** Called if the outcome of a COMMIT is unknown: the process must stop. */
  readonly onUnknownCommit?: (error: Error) => void;
  /** Called after each write transaction, with its error or null. */
  readonly onWrite?: (error: unknown) => void;
  readonly witnesses?: WitnessPolicy;
  /** Gets the error that delayed an erasure after its rows were deleted; a background job finishes it. */
  readonly onErasureFault?: (error: unknown) => void;
  /** Milliseconds for which an answer waits for an erasure; without it, there is no limit, as in commands. */
  readonly patienceMs?: number;
}

const rethrow = (error: unknown): never => {
  throw error;
};

/**
 * Its tenants are empty until `loadTenants` is called, or a server has polled.
 * @throws {ConfigError} with a plain sentence
 */
export async function createServices(config: Config, options: ServiceOptions = {}): Promise<Services> {
  const { clock = Date.now, random = randomBytes, witnesses, onErasureFault = rethrow, patienceMs } = options;
  const store = options.store ?? (await openStore(config, options));
  const { database, masterKey, serverSecret } = store;
  const keyUse = createKeyUseCounter(database, clock);
  const tenants = createDirectory({ masterKey, clock, random, onOpened: keyUse.note });
  const book = createCheckpointBook(config.data_dir, serverSecret);
  const tenantOf = tenants.find;
  const parts: Installation = { config, clock, random, database, serverSecret, tenants, tenantOf, keyUse };
  return {
    ...parts,
    book,
    log: createLogService({ ...parts, book, ...(witnesses && { witnesses }) }),
    consent: createConsent(parts),
    rights: createRights(parts, { onErasureFault, patienceMs }),
  };
}

/** Reads all tenants once. A damaged tenant is left out; `gpd doctor` names it. */
export async function loadTenants({ database, tenants }: Services): Promise<void> {
  tenants.apply(await readSnapshot(database, -1), tenants.masterKey());
}
