import { type ApiKey, hashSecret } from '../auth/credentials.ts';
import type { Config } from '../config.ts';
import type { Database } from '../db/engine.ts';
import { type MasterKey, WrongMasterKey } from '../keys/master-key.ts';
import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import type { KeyUseCounter, OnOpened } from './key-use-store.ts';
import type { DamagedTenant, SnapshotPage } from './snapshot-store.ts';
import { createTenant, type SealKeys, type Tenant, type TenantDeps } from './tenant.ts';

/**
 * All tenants and API keys, in the memory of this process. A
 * poll keeps it at most a few seconds behind the database.
 */
export interface TenantDirectory {
  readonly find: (kid: string) => Tenant | undefined;
  readonly all: () => readonly Tenant[];
  /** Null for an unknown key, which may have been created since the last poll. */
  readonly findApiKey: (secret: string) => ApiKey | 'revoked' | null;
  /** True for an origin of any tenant. */
  readonly knowsOrigin: (origin: string) => boolean;
  readonly hasWebhooks: () => boolean;
  /** The current master key: `keys rewrap` may have changed it since the process started. */
  readonly masterKey: () => MasterKey;
  /** Calls `listener` after each poll with the seal keys that changed. Only one listener is kept. */
  readonly watchSealKeys: (listener: (changes: SealKeyChanges) => void) => void;
  /**
   * Counts a bundle that was decrypted. False: the generation is no longer live, and the bundle must be
   * refused.
   */
  readonly noteOpened: (kid: string, generation: number) => boolean;
  /**
   * Applies the changes of a poll. A damaged tenant is no longer served: its unreadable row may revoke a key.
   * @param rightKey the master key, known to be right because it unwrapped the server's secret: a tenant's
   * secret that it cannot unwrap
   *   is damaged
   * @returns the damaged tenants among those that changed
   * @throws {WrongMasterKey} without `rightKey`, if a secret cannot be unwrapped; then nothing is changed
   */
  readonly apply: (page: SnapshotPage, rightKey?: MasterKey) => readonly DamagedTenant[];
}

/**
 * The parts of an open installation that all features share; each function names those that it uses, by
 * `Pick`.
 */
export interface Installation {
  readonly config: Config;
  readonly clock: Clock;
  readonly random: Random;
  readonly database: Database;
  readonly serverSecret: Uint8Array;
  readonly tenants: TenantDirectory;
  /** Undefined for a tenant that does not exist, or whose keys cannot be read. */
  readonly tenantOf: (kid: string) => Tenant | undefined;
  /** Counts which seal key decrypted a bundle. */
  readonly keyUse: KeyUseCounter;
}

export interface DirectoryOptions {
  readonly masterKey: MasterKey;
  readonly clock: Clock;
  readonly random: Random;
  /** Called for each bundle that a generation decrypted. */
  readonly onOpened?: OnOpened | undefined;
}

/** The seal keys of each changed tenant; null if the tenant was removed. */
export type SealKeyChanges = ReadonlyMap<string, SealKeys | null>;

/** @throws {WrongMasterKey} before anything is changed */
function applyPage(
  before: ReadonlyMap<string, Tenant>,
  page: SnapshotPage,
  deps: TenantDeps,
  isRightKey: boolean,
) {
  const tenants = new Map([...before].filter(([kid]) => page.kids?.has(kid)));
  const damaged = [...page.damaged];
  for (const snapshot of page.changed) {
    const { kid } = snapshot;
    try {
      tenants.set(kid, createTenant(snapshot, deps));
    } catch (error) {
      if (error instanceof WrongMasterKey && !isRightKey) throw error;
      damaged.push({ kid, error });
    }
  }
  for (const { kid } of damaged) tenants.delete(kid);
  const removedKids = [...before.keys()].filter((kid) => !tenants.has(kid));
  const sealKeys = new Map([
    ...removedKids.map((kid) => [kid, null] as const),
    ...page.changed.map(({ kid }) => [kid, tenants.get(kid)?.sealKeys ?? null] as const),
  ]);
  return { tenants, damaged, sealKeys };
}

export function createDirectory(options: DirectoryOptions): TenantDirectory {
  const { clock, random, onOpened = () => {} } = options;
  let masterKey = options.masterKey;
  let tenants: ReadonlyMap<string, Tenant> = new Map();
  let apiKeys = new Map<string, ApiKey>();
  let origins = new Set<string>();
  let hasWebhooks = false;
  let sealKeyListener: (changes: SealKeyChanges) => void = () => {};
  return {
    find: (kid) => tenants.get(kid),
    all: () => [...tenants.values()],
    findApiKey(secret) {
      const key = apiKeys.get(hashSecret(secret));
      if (!key) return null;
      return key.revokedAt === null ? key : 'revoked';
    },
    masterKey: () => masterKey,
    watchSealKeys(listener) {
      sealKeyListener = listener;
    },
    knowsOrigin: (origin) => origins.has(origin),
    noteOpened(kid, generation) {
      const tenant = tenants.get(kid);
      if (!tenant?.isLive(generation)) return false;
      onOpened(tenant, generation);
      return true;
    },
    hasWebhooks: () => hasWebhooks,
    apply(page, rightKey) {
      if (page.kids === null) return [];
      const deps = { masterKey: rightKey ?? masterKey, clock, random };
      const applied = applyPage(tenants, page, deps, rightKey !== undefined);
      masterKey = deps.masterKey;
      tenants = applied.tenants;
      sealKeyListener(applied.sealKeys);
      const all = [...tenants.values()];
      apiKeys = new Map(all.flatMap((tenant) => tenant.apiKeys.map((key) => [key.hash, key])));
      hasWebhooks = all.some(({ webhooks }) => webhooks.length > 0);
      origins = new Set(all.flatMap((tenant) => [...tenant.origins]));
      return applied.damaged;
    },
  };
}
