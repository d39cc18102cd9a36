import { type ApiKey, hashSecret } from '../auth/api-key.ts';
import type { KeyChanges } from '../ingest/decrypt/messages.ts';
import { type MasterKey, WrongMasterKey } from '../keys/master-key.ts';
import type { Clock } from '../lib/clock.ts';
import type { OnOpened } from '../tenants/key-use-service.ts';
import { type Entry, type EntryDeps, makeEntry } from './directory-entry.ts';
import type { DamagedTenant, SnapshotPage } from './snapshot-store.ts';

/** All tenants as this process knows them, at most one poll behind the database. */
export type LiveDirectory = ReturnType<typeof makeDirectory>;

/** @throws {WrongMasterKey} before anything changed */
function takePage(
  before: ReadonlyMap<string, Entry>,
  page: SnapshotPage,
  deps: EntryDeps,
  rightKey: boolean,
) {
  const entries = new Map([...before].filter(([kid]) => page.kids?.has(kid)));
  const damaged = [...page.damaged];
  for (const snapshot of page.changed) {
    const { kid } = snapshot.tenant;
    try {
      entries.set(kid, makeEntry(snapshot, deps));
    } catch (error) {
      if (error instanceof WrongMasterKey && !rightKey) throw error;
      damaged.push({ kid, error });
    }
  }
  for (const { kid } of damaged) entries.delete(kid);
  const gone = [...before.keys()].filter((kid) => !entries.has(kid));
  const material: KeyChanges = new Map([
    ...gone.map((kid) => [kid, null] as const),
    ...page.changed.map(({ tenant: { kid } }) => [kid, entries.get(kid)?.material ?? null] as const),
  ]);
  return { entries, damaged, material };
}

/** @param onKeys told of the keys that changed, once all of a page could be unwrapped */
export function makeDirectory(
  clock: Clock,
  onOpened: OnOpened = () => {},
  onKeys: (changes: KeyChanges) => void = () => {},
) {
  let entries = new Map<string, Entry>();
  let apiKeys = new Map<string, ApiKey>();
  let origins = new Set<string>();
  let hasWebhooks = false;
  return {
    tenant: (kid: string) => entries.get(kid)?.tenant,
    consentTenant: (kid: string) => entries.get(kid)?.consent,
    consentTenants: () => [...entries.values()].map(({ consent }) => consent),
    publicKey: (kid: string) => entries.get(kid)?.publicKey ?? null,
    /** Null: it is not known here, and may have been made since the last poll. */
    apiKey: (secret: string): ApiKey | 'revoked' | null => {
      const key = apiKeys.get(hashSecret(secret));
      if (!key) return null;
      return key.revokedAt === null ? key : 'revoked';
    },
    knowsOrigin: (origin: string) => origins.has(origin),
    webhook: (kid: string, id: string) => entries.get(kid)?.webhooks.find((webhook) => webhook.id === id),
    /** Another thread opened a bundle: counts it. False: the generation is no longer live, and the bundle was not opened. */
    noteOpened(kid: string, generation: number) {
      const entry = entries.get(kid);
      if (!entry?.isLive(generation)) return false;
      onOpened(entry.tenant, generation);
      return true;
    },
    get hasWebhooks() {
      return hasWebhooks;
    },
    /**
     * Takes what changed. A tenant that cannot be read is no longer served: in its row a key may have been revoked.
     * @param rightKey what does not open is the tenant's own damage
     * @returns the damaged tenants among those that changed
     * @throws {WrongMasterKey} otherwise, and keeps what was
     */
    apply(page: SnapshotPage, masterKey: MasterKey, rightKey = false): readonly DamagedTenant[] {
      if (page.kids === null) return [];
      const changed = takePage(entries, page, { masterKey, clock, onOpened }, rightKey);
      entries = changed.entries;
      onKeys(changed.material);
      const all = [...entries.values()];
      apiKeys = new Map(all.flatMap((entry) => entry.apiKeys.map((key) => [key.hash, key])));
      hasWebhooks = all.some((entry) => entry.webhooks.length > 0);
      origins = new Set(all.flatMap((entry) => [...entry.tenant.origins]));
      return changed.damaged;
    },
  };
}
