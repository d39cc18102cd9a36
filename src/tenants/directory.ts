import { type ApiKey, hashSecret } from '../auth/credentials.ts';
import { type MasterKey, WrongMasterKey } from '../keys/master-key.ts';
import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import type { OnOpened } from './key-use-service.ts';
import type { DamagedTenant, SnapshotPage } from './snapshot-store.ts';
import { createTenant, type SealKeys, type Tenant, type TenantDeps } from './tenant.ts';

/** All tenants as this process knows them, at most one poll behind the database. */
export type TenantDirectory = ReturnType<typeof createDirectory>;

export interface DirectoryOptions {
  readonly masterKey: MasterKey;
  readonly clock: Clock;
  readonly random: Random;
  /** Called for each bundle that a generation decrypted. */
  readonly onOpened?: OnOpened | undefined;
}

/** The changed seal keys of each kid; null: the tenant has gone. */
export type SealKeyChanges = ReadonlyMap<string, SealKeys | null>;

/** @throws {WrongMasterKey} before anything changed */
function takePage(
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
  const gone = [...before.keys()].filter((kid) => !tenants.has(kid));
  const sealKeys = new Map([
    ...gone.map((kid) => [kid, null] as const),
    ...page.changed.map(({ kid }) => [kid, tenants.get(kid)?.sealKeys ?? null] as const),
  ]);
  return { tenants, damaged, sealKeys };
}

export function createDirectory(options: DirectoryOptions) {
  const { clock, random, onOpened = () => {} } = options;
  let masterKey = options.masterKey;
  let tenants: ReadonlyMap<string, Tenant> = new Map();
  let apiKeys = new Map<string, ApiKey>();
  let origins = new Set<string>();
  let hasWebhooks = false;
  let onKeys: (changes: SealKeyChanges) => void = () => {};
  return {
    find: (kid: string): Tenant | undefined => tenants.get(kid),
    all: (): readonly Tenant[] => [...tenants.values()],
    /** Null: it is not known here, and may have been made since the last poll. */
    apiKey: (secret: string): ApiKey | 'revoked' | null => {
      const key = apiKeys.get(hashSecret(secret));
      if (!key) return null;
      return key.revokedAt === null ? key : 'revoked';
    },
    /** The master key of now: `keys rewrap` may have changed it since the start. */
    masterKey: (): MasterKey => masterKey,
    /** Calls `listener` with the seal keys that changed, once all of a page could be unwrapped. */
    onKeys(listener: typeof onKeys): void {
      onKeys = listener;
    },
    knowsOrigin: (origin: string): boolean => origins.has(origin),
    /** Another thread opened a bundle: counts it. False: the generation is no longer live, and the bundle was not opened. */
    noteOpened: (kid: string, generation: number): boolean => {
      const tenant = tenants.get(kid);
      if (!tenant?.isLive(generation)) return false;
      onOpened(tenant, generation);
      return true;
    },
    hasWebhooks: (): boolean => hasWebhooks,
    /**
     * Takes what changed. A tenant that cannot be read is no longer served: in its row a key may have been revoked.
     * @param rightKey the key that opens the server's own secret: what it does not open is the tenant's own damage
     * @returns the damaged tenants among those that changed
     * @throws {WrongMasterKey} otherwise, and keeps what was
     */
    apply(page: SnapshotPage, rightKey?: MasterKey): readonly DamagedTenant[] {
      if (page.kids === null) return [];
      const deps = { masterKey: rightKey ?? masterKey, clock, random, onOpened };
      const taken = takePage(tenants, page, deps, rightKey !== undefined);
      masterKey = deps.masterKey;
      tenants = taken.tenants;
      onKeys(taken.sealKeys);
      const all = [...tenants.values()];
      apiKeys = new Map(all.flatMap((tenant) => tenant.apiKeys.map((key) => [key.hash, key])));
      hasWebhooks = all.some(({ webhooks }) => webhooks.length > 0);
      origins = new Set(all.flatMap((tenant) => [...tenant.origins]));
      return taken.damaged;
    },
  };
}
