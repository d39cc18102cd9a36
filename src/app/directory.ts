import { randomBytes } from 'node:crypto';
import { type ApiKey, hashSecret } from '../auth/credentials.ts';
import { type ConsentTenant, makeConsentTenant } from '../consent/tenant.ts';
import type { KeyChanges } from '../ingest/decrypt/messages.ts';
import type { IngestTenant } from '../ingest/ports.ts';
import { applyPolicy, DEFAULT_POLICY } from '../ingest/verdict/policy.ts';
import { isLive, liveGenerations, publicKeyOf, wrapContext } from '../keys/generation.ts';
import {
  LEDGER_SECRET,
  type MasterKey,
  ROOT_SECRET,
  SYMMETRIC_SECRET,
  tenantSecretContext,
  WrongMasterKey,
} from '../keys/master-key.ts';
import type { Clock } from '../lib/clock.ts';
import { memoised } from '../lib/functions.ts';
import type { PubKeyResponse } from '../schema/responses.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import { ASYMMETRIC_ALG } from '../seal/constants.ts';
import { makeOpener, makeSymmetricOpener, type Opener } from '../seal/open.ts';
import type { OnOpened } from '../tenants/key-use-service.ts';
import { makeMonitorMatcher } from '../tenants/monitors.ts';
import { deriveTenantKeys } from '../tenants/tenant.ts';
import type { DamagedTenant, SnapshotPage, TenantSnapshot } from './snapshot-store.ts';

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

/** One tenant as this process knows it, its keys unwrapped. */
export type Entry = ReturnType<typeof makeEntry>;

/** The live generations, each with what it opens by. */
function openersOf(snapshot: TenantSnapshot, { masterKey, clock, onOpened }: EntryDeps) {
  const { kid, createdAt: since } = snapshot.tenant;
  return liveGenerations(snapshot.keys, clock()).flatMap((key) => {
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
}

export interface EntryDeps {
  readonly masterKey: MasterKey;
  readonly clock: Clock;
  readonly onOpened: OnOpened;
}

function unwrap(snapshot: TenantSnapshot, deps: EntryDeps) {
  const { kid } = snapshot.tenant;
  const secret = (purpose: string): Buffer | null => {
    const wrapped = snapshot.secrets.get(purpose);
    return wrapped === undefined ? null : deps.masterKey.unwrap(wrapped, tenantSecretContext(kid, purpose));
  };
  const root = secret(ROOT_SECRET);
  const logSeed = secret(LEDGER_SECRET);
  if (!root || !logSeed) throw new Error('a tenant has lost its root secret or the key of its log');
  if (snapshot.logOrigin === '') throw new Error(`the tenant ${kid} has lost its log: restore a backup`);
  const symmetric = secret(SYMMETRIC_SECRET);
  return { derived: deriveTenantKeys(root), logSeed, symmetric, openers: openersOf(snapshot, deps) };
}

function makeIngestTenant(
  snapshot: TenantSnapshot,
  { derived, symmetric, openers }: ReturnType<typeof unwrap>,
  clock: Clock,
  consent: ConsentTenant,
): IngestTenant {
  const { kid, since, origins, settings, webhooksFor } = consent;
  const { live, shadow } = snapshot.policies;
  return {
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
    // Few, and asked for with every bundle.
    epochKey: memoised((epoch: number) => derived.epoch(epoch)),
    refOf: consent.refOf,
    // What the row says is not believed without its MAC: then every purpose heeds the signal.
    gpcPolicy: (purpose) => (consent.termsFit && consent.rules.gpcOf(purpose)) || 'opt-out',
    policy: live ? applyPolicy(live) : DEFAULT_POLICY,
    shadow: shadow ? applyPolicy(shadow) : null,
    isMonitor: makeMonitorMatcher(live?.monitors ?? { agents: [], networks: [] }),
    decisionWebhooks: webhooksFor('decision.recorded'),
    populationKey: settings['transparency.retain'] === 'summary' ? derived.population : null,
    needsProof: settings['consent.basis'] === 'ledger',
  };
}

/** Of the published generation, by its private key: the row's public key could be that of somebody who reads along. */
function publishedKey(
  { tenant: { kid }, keys }: TenantSnapshot,
  openers: ReturnType<typeof openersOf>,
): PubKeyResponse | null {
  const published = keys.find((key) => key.state === 'published');
  if (!published) return null;
  const opener = openers.find(({ key }) => key.generation === published.generation);
  const publicKey = opener && publicKeyOf(opener.privateKey);
  if (publicKey === undefined || publicKey !== published.publicKey)
    throw new Error(`the public seal key of ${kid} is not that of its private key: restore a backup`);
  return { kid, alg: ASYMMETRIC_ALG, publicKey };
}

/** @throws {WrongMasterKey} */
export function makeEntry(snapshot: TenantSnapshot, deps: EntryDeps) {
  const { kid, createdAt: since, settings } = snapshot.tenant;
  const unwrapped = unwrap(snapshot, deps);
  const { openers, symmetric, logSeed, derived } = unwrapped;
  const publicKey: PubKeyResponse | null = publishedKey(snapshot, openers);
  const { webhooks } = snapshot;
  const webhooksFor = (event: WebhookEvent): readonly string[] =>
    webhooks.filter((webhook) => webhook.events.includes(event)).map((webhook) => webhook.id);
  const consent = makeConsentTenant({
    kid,
    since,
    origins: new Set(settings.origins),
    keys: derived,
    purposes: snapshot.purposes,
    policies: snapshot.consentPolicies,
    termsMac: snapshot.termsMac,
    logOrigin: snapshot.logOrigin,
    logSeed,
    settings,
    revision: snapshot.revision,
    webhooksFor,
    random: randomBytes,
  });
  return {
    tenant: makeIngestTenant(snapshot, unwrapped, deps.clock, consent),
    consent,
    /** Copies: what is sent to a thread takes the whole of its buffer along. */
    material: {
      generations: openers.map(({ key: { generation }, privateKey }) => ({ generation, privateKey })),
      symmetric: symmetric && new Uint8Array(symmetric),
    },
    isLive: (generation: number) =>
      openers.some(({ key }) => key.generation === generation && isLive(key, deps.clock())),
    publicKey,
    webhooks,
    apiKeys: snapshot.apiKeys,
  };
}
