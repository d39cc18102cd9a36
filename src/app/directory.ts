import type { ApiKey } from '../auth/api-key.ts';
import { hashApiKey } from '../auth/api-key.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { KeyChanges } from '../ingest/opening/messages.ts';
import type { IngestTenant } from '../ingest/ports.ts';
import { type MasterKey, WrongMasterKey } from '../keys/master-key.ts';
import type { Clock } from '../lib/clock.ts';
import type { PubKeyResponse } from '../schema/responses.ts';
import type { OnOpened } from '../tenants/key-use-service.ts';
import type { Webhook } from '../webhooks/store.ts';
import { type Entry, type EntryDeps, makeEntry } from './directory-entry.ts';
import type { DamagedTenant, SnapshotPage } from './snapshot-store.ts';

/** All tenants as this process knows them, at most one poll behind the database. */
export interface Directory {
  readonly tenant: (kid: string) => IngestTenant | undefined;
  readonly consentTenant: (kid: string) => ConsentTenant | undefined;
  readonly publicKey: (kid: string) => PubKeyResponse | null;
  /** Null: it is not known here, and may have been made since the last poll. */
  readonly apiKey: (secret: string) => ApiKey | 'revoked' | null;
  readonly knowsOrigin: (origin: string) => boolean;
  readonly webhook: (kid: string, id: string) => Webhook | undefined;
  /** Another thread opened a bundle: counts it. False: the generation is live no more, and the bundle was not opened. */
  readonly noteOpened: (kid: string, generation: number) => boolean;
  readonly hasWebhooks: boolean;
  readonly size: number;
}

export interface LiveDirectory extends Directory {
  /**
   * Takes what changed. A tenant that cannot be read is no longer served: in its row a key may have been revoked.
   * @param rightKey what does not open is the tenant's own damage
   * @returns the damaged tenants among those that changed
   * @throws {WrongMasterKey} otherwise, and keeps what was
   */
  apply(page: SnapshotPage, masterKey: MasterKey, rightKey?: boolean): readonly DamagedTenant[];
}

/** @throws {WrongMasterKey} before anything changed */
function takePage(
  before: ReadonlyMap<string, Entry>,
  page: SnapshotPage,
  deps: EntryDeps,
  rightKey: boolean,
): { entries: Map<string, Entry>; damaged: readonly DamagedTenant[]; material: KeyChanges } {
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
): LiveDirectory {
  let entries = new Map<string, Entry>();
  let apiKeys = new Map<string, ApiKey>();
  let origins = new Set<string>();
  let hasWebhooks = false;
  return {
    tenant: (kid) => entries.get(kid)?.tenant,
    consentTenant: (kid) => entries.get(kid)?.consent,
    publicKey: (kid) => entries.get(kid)?.publicKey ?? null,
    apiKey(secret) {
      const key = apiKeys.get(hashApiKey(secret));
      if (!key) return null;
      return key.revokedAt === null ? key : 'revoked';
    },
    knowsOrigin: (origin) => origins.has(origin),
    webhook: (kid, id) => entries.get(kid)?.webhooks.find((webhook) => webhook.id === id),
    noteOpened(kid, generation) {
      const entry = entries.get(kid);
      if (!entry?.isLive(generation)) return false;
      onOpened(entry.tenant, generation);
      return true;
    },
    get hasWebhooks() {
      return hasWebhooks;
    },
    get size() {
      return entries.size;
    },
    apply(page, masterKey, rightKey = false) {
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
