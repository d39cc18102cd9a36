import { randomBytes } from 'node:crypto';
import { type ConsentTenant, makeConsentTenant } from '../consent/tenant.ts';
import { applyPolicy, DEFAULT_POLICY } from '../ingest/classify/policy.ts';
import type { IngestTenant } from '../ingest/ports.ts';
import { LEDGER_SECRET, ROOT_SECRET, SYMMETRIC_SECRET, tenantSecretContext } from '../keys/contexts.ts';
import { isLive, liveGenerations, publicKeyOf, wrapContext } from '../keys/generation.ts';
import type { MasterKey } from '../keys/master-key.ts';
import type { Clock } from '../lib/clock.ts';
import { memoised } from '../lib/memoised.ts';
import type { PubKeyResponse } from '../schema/responses.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import { ASYMMETRIC_ALG } from '../seal/constants.ts';
import { makeOpener, makeSymmetricOpener, type Opener } from '../seal/open.ts';
import type { OnOpened } from '../tenants/key-use-service.ts';
import { makeMonitorMatcher } from '../tenants/monitors.ts';
import { deriveTenantKeys } from '../tenants/tenant.ts';
import type { TenantSnapshot } from './snapshot-store.ts';

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
