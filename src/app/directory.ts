import type { ApiKey } from '../auth/api-key.ts';
import { hashApiKey } from '../auth/api-key.ts';
import { type ConsentTenant, makeConsentTenant } from '../consent/tenant.ts';
import { applyPolicy, DEFAULT_POLICY } from '../ingest/classify/policy.ts';
import type { KeyChanges, KeyMaterial } from '../ingest/opening/messages.ts';
import type { IngestTenant } from '../ingest/ports.ts';
import { LEDGER_SECRET, ROOT_SECRET, SYMMETRIC_SECRET, tenantSecretContext } from '../keys/contexts.ts';
import { isLive, liveGenerations, wrapContext } from '../keys/generation.ts';
import { type MasterKey, WrongMasterKey } from '../keys/master-key.ts';
import type { Clock } from '../lib/clock.ts';
import type { PubKeyResponse } from '../schema/responses.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import { ASYMMETRIC_ALG } from '../seal/constants.ts';
import { makeOpener, makeSymmetricOpener, type Opener } from '../seal/open.ts';
import type { OnOpened } from '../tenants/key-use-service.ts';
import { makeMonitorMatcher } from '../tenants/monitors.ts';
import { deriveTenantKeys } from '../tenants/tenant.ts';
import type { Webhook } from '../webhooks/store.ts';
import type { DamagedTenant, SnapshotPage, TenantSnapshot } from './snapshot-store.ts';

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

interface Entry {
  readonly tenant: IngestTenant;
  readonly consent: ConsentTenant;
  readonly publicKey: PubKeyResponse | null;
  readonly apiKeys: readonly ApiKey[];
  readonly webhooks: readonly Webhook[];
  /** Copies: what is sent to a thread takes the whole of its buffer along. */
  readonly material: KeyMaterial;
  readonly isLive: (generation: number) => boolean;
}

/** Epoch keys are few and asked for with every bundle. */
function memoiseEpochs(derive: (epoch: number) => Buffer): (epoch: number) => Buffer {
  const cache = new Map<number, Buffer>();
  return (epoch) => {
    let key = cache.get(epoch);
    if (!key) {
      key = derive(epoch);
      cache.set(epoch, key);
    }
    return key;
  };
}

function makeEntry(snapshot: TenantSnapshot, masterKey: MasterKey, clock: Clock, onOpened: OnOpened): Entry {
  const { tenant, keys } = snapshot;
  const { kid, createdAt: since, settings } = tenant;
  const { live, shadow } = snapshot.policies;
  const secret = (purpose: string): Buffer | null => {
    const wrapped = snapshot.secrets.get(purpose);
    return wrapped === undefined ? null : masterKey.unwrap(wrapped, tenantSecretContext(kid, purpose));
  };
  const root = secret(ROOT_SECRET);
  const ledgerSeed = secret(LEDGER_SECRET);
  if (!root || !ledgerSeed) throw new Error('a tenant has lost its root secret or the key of its log');
  if (snapshot.logOrigin === '') throw new Error(`the tenant ${kid} has lost its log: restore a backup`);
  const derived = deriveTenantKeys(root);
  const symmetric = secret(SYMMETRIC_SECRET);
  const openers = liveGenerations(keys, clock()).flatMap((key) => {
    if (key.wrappedPrivate === null) return [];
    const privateKey = new Uint8Array(masterKey.unwrap(key.wrappedPrivate, wrapContext(kid, key.generation)));
    const opener = makeOpener(privateKey);
    const open: Opener = (bundle) => {
      const opened = opener(bundle);
      if (opened) onOpened({ kid, since }, key.generation);
      return opened;
    };
    return [{ key, open, privateKey }];
  });
  const policies = new Map(snapshot.purposes.map((purpose) => [purpose.id, purpose.gpc]));
  const published = keys.find((key) => key.state === 'published');
  const origins = new Set(settings.origins);
  const { purposes, consentPolicies, logOrigin, webhooks } = snapshot;
  const webhooksFor = (event: WebhookEvent): readonly string[] =>
    webhooks.filter((webhook) => webhook.events.includes(event)).map((webhook) => webhook.id);
  return {
    consent: makeConsentTenant({
      kid,
      since,
      origins,
      keys: derived,
      purposes,
      policies: consentPolicies,
      logOrigin,
      ledgerSeed,
      settings,
      revision: snapshot.revision,
      webhooksFor,
    }),
    tenant: {
      kid,
      since,
      origins,
      // A grace may end between two polls: what is live is asked each time.
      get openers() {
        const now = clock();
        return openers.filter(({ key }) => isLive(key, now)).map(({ open }) => open);
      },
      symmetricOpener: symmetric && makeSymmetricOpener(symmetric),
      identityKey: derived.identity,
      durableKey: derived.durable,
      epochKey: memoiseEpochs((epoch) => derived.epoch(epoch)),
      gpcPolicy: (purpose) => policies.get(purpose) ?? 'opt-out',
      policy: live ? applyPolicy(live) : DEFAULT_POLICY,
      shadow: shadow ? applyPolicy(shadow) : null,
      isMonitor: makeMonitorMatcher(live?.monitors ?? { agents: [], networks: [] }),
      decisionWebhooks: webhooksFor('decision.recorded'),
      populationKey: settings['transparency.retain'] === 'summary' ? derived.population : null,
      needsProof: settings['consent.basis'] === 'ledger',
    },
    material: {
      generations: openers.map(({ key: { generation }, privateKey }) => ({ generation, privateKey })),
      symmetric: symmetric && new Uint8Array(symmetric),
    },
    isLive: (generation) => openers.some(({ key }) => key.generation === generation && isLive(key, clock())),
    publicKey: published ? { kid, alg: ASYMMETRIC_ALG, publicKey: published.publicKey } : null,
    webhooks,
    apiKeys: snapshot.apiKeys,
  };
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
      const { kids } = page;
      if (kids === null) return [];
      const next = new Map([...entries].filter(([kid]) => kids.has(kid)));
      const damaged = [...page.damaged];
      for (const snapshot of page.changed) {
        const { kid } = snapshot.tenant;
        try {
          next.set(kid, makeEntry(snapshot, masterKey, clock, onOpened));
        } catch (error) {
          if (error instanceof WrongMasterKey && !rightKey) throw error;
          damaged.push({ kid, error });
        }
      }
      for (const { kid } of damaged) next.delete(kid);
      const gone = [...entries.keys()].filter((kid) => !next.has(kid));
      entries = next;
      onKeys(
        new Map([
          ...gone.map((kid) => [kid, null] as const),
          ...page.changed.map(({ tenant: { kid } }) => [kid, next.get(kid)?.material ?? null] as const),
        ]),
      );
      const all = [...next.values()];
      apiKeys = new Map(all.flatMap((entry) => entry.apiKeys.map((key) => [key.hash, key])));
      hasWebhooks = all.some((entry) => entry.webhooks.length > 0);
      origins = new Set(all.flatMap((entry) => [...entry.tenant.origins]));
      return damaged;
    },
  };
}
