import type { ApiKey } from '../auth/credentials.ts';
import { type Generation, isLive, liveGenerations, publicKeyOf, wrapContext } from '../keys/generation.ts';
import {
  createMasterKey,
  deriveTenantKeys,
  LEDGER_SECRET,
  type MasterKey,
  ROOT_SECRET,
  SYMMETRIC_SECRET,
  tenantSecretContext,
} from '../keys/master-key.ts';
import { createNoteSigner, type NoteSigner, parseVkey } from '../ledger/note.ts';
import type { Clock } from '../lib/clock.ts';
import { memoised } from '../lib/collections.ts';
import { hmacSha256, type Random } from '../lib/crypto.ts';
import { type Address, type AddressRange, inRanges, parseRange } from '../lib/ip.ts';
import type { GpcPolicy } from '../schema/gpc.ts';
import type { TenantPolicy } from '../schema/policy.ts';
import type { PubKeyResponse } from '../schema/responses.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import { ASYMMETRIC_ALG } from '../seal/constants.ts';
import { createOpener, createSymmetricOpener, type Opener } from '../seal/open.ts';
import type { OnOpened } from './key-use-service.ts';
import { attestationPurpose, type ConsentPolicy, type Purpose } from './purposes.ts';
import type { TenantSettings } from './settings.ts';
import { createStateMac, macFits, type StateMac } from './state-mac.ts';
import type { TenantPolicies, Webhook } from './tenant-store.ts';

/** The rules of consent that the tenant has defined. */
export interface ConsentRules {
  /** GPC policy by purpose id; a purpose that is not there is unknown. */
  readonly gpcOf: (purpose: string) => GpcPolicy | undefined;
  /** Version of the last policy; 0: none was published. */
  readonly currentVersion: number;
  /** Version of the last policy whose change was material. */
  readonly materialVersion: number;
  /** `consent.byAutomation` is `deny`. */
  readonly denyDoubted: boolean;
}

/** The live seal keys, as the thread that decrypts is sent them. */
export interface SealKeys {
  /** Newest first; `privateKey` is the 32-byte P-256 scalar. */
  readonly generations: readonly { readonly generation: number; readonly privateKey: Uint8Array }[];
  readonly symmetric: Uint8Array | null;
}

/** A tenant as its rows have it, secrets still wrapped. */
export interface TenantSnapshot {
  readonly kid: string;
  readonly createdAt: number;
  readonly settings: TenantSettings;
  /** The revision of its last change. */
  readonly revision: number;
  /** Wrapped secrets by their purpose. */
  readonly secrets: ReadonlyMap<string, string>;
  readonly keys: readonly Generation[];
  readonly purposes: readonly Purpose[];
  readonly consentPolicies: readonly ConsentPolicy[];
  /** The MAC over the purposes and policies. */
  readonly termsMac: string | null;
  readonly apiKeys: readonly ApiKey[];
  readonly webhooks: readonly Webhook[];
  /** The name of the tenant's log. */
  readonly logOrigin: string;
  readonly policies: TenantPolicies;
}

/** A tenant with its keys unwrapped, as every part of gpd knows it: held in memory, at most 5 s behind the database. */
export interface Tenant {
  readonly kid: string;
  /** When it was made: a later one under its kid is another. */
  readonly since: number;
  /** The revision of its last change. */
  readonly revision: number;
  readonly settings: TenantSettings;
  readonly origins: ReadonlySet<string>;
  readonly apiKeys: readonly ApiKey[];
  readonly webhooks: readonly Webhook[];
  /** Ids of the webhooks that want this event. */
  readonly webhooksFor: (event: WebhookEvent) => readonly string[];

  /** Live seal keys, newest first. */
  readonly openers: readonly Opener[];
  /** Null: the tenant has no symmetric key. */
  readonly symmetricOpener: Opener | null;
  readonly sealKeys: SealKeys;
  /** Whether bundles to this generation are still opened. */
  readonly isLive: (generation: number) => boolean;
  /** Null: no generation is published. */
  readonly publicKey: PubKeyResponse | null;

  readonly identityKey: Uint8Array;
  readonly durableKey: Uint8Array;
  readonly epochKey: (epoch: number) => Uint8Array;
  /** `transparency.retain = "summary"`: values are counted under this key. Null: nothing is kept of signals. */
  readonly populationKey: Uint8Array | null;
  /** The tenant's changes to the table of rules; null: none. */
  readonly policy: TenantPolicy | null;
  /** Weights that are tried out: counted, never answered. */
  readonly shadow: TenantPolicy | null;
  /** Is this agent or client address a monitor of the operator's own? */
  readonly isMonitor: (agentId: string | null, client: Address | null) => boolean;
  /** Ids of the webhooks that get every decision. */
  readonly decisionWebhooks: readonly string[];
  /** False until the tenant proves consent by its own ledger (contract 3.3). */
  readonly needsProof: boolean;

  readonly purposes: readonly Purpose[];
  readonly policies: readonly ConsentPolicy[];
  readonly termsOf: (purpose: string) => Purpose | undefined;
  /** The effect of a GPC signal on a purpose; an unknown purpose is `opt-out`. */
  readonly gpcPolicy: (purpose: string) => GpcPolicy;
  readonly rules: ConsentRules;
  /** Purposes and policy versions carry their MAC: else nothing is granted, and no check is answered. */
  readonly termsFit: boolean;
  readonly principalKey: Uint8Array;
  /** Keyed reference of a principal. */
  readonly refOf: (principalId: string) => string;
  readonly principalWrap: Uint8Array;
  /** Wraps under that key what names a person. */
  readonly wrapper: MasterKey;
  /** MACs of the rows that a check is answered from. */
  readonly stateMac: StateMac;
  /** Keyed references of receipts, audit rows and tombstones. */
  readonly rightsKey: Uint8Array;
  /** Signs the checkpoints of the tenant's log. */
  readonly signer: NoteSigner;
  /** The log's key again, in the spelling of a JWK. */
  readonly receiptKey: { readonly publicX: string; readonly seed: string };
}

/**
 * The keyed reference under which a principal is stored: without the tenant's key it names nobody. In NFC once more:
 * whatever way an id came in by, its spellings have one reference.
 */
export function principalRef(principalKey: Uint8Array, principalId: string): string {
  return hmacSha256(principalKey, principalId.normalize('NFC')).toString('base64url');
}

export interface TenantDeps {
  readonly masterKey: MasterKey;
  readonly clock: Clock;
  readonly random: Random;
  readonly onOpened: OnOpened;
}

/** @throws {WrongMasterKey} */
function unwrapSecrets({ kid, secrets, logOrigin }: TenantSnapshot, { masterKey }: TenantDeps) {
  const secret = (purpose: string): Buffer | null => {
    const wrapped = secrets.get(purpose);
    return wrapped === undefined ? null : masterKey.unwrap(wrapped, tenantSecretContext(kid, purpose));
  };
  const root = secret(ROOT_SECRET);
  const logSeed = secret(LEDGER_SECRET);
  if (!root || !logSeed) throw new Error('a tenant has lost its root secret or the key of its log');
  if (logOrigin === '') throw new Error(`the tenant ${kid} has lost its log: restore a backup`);
  return { keys: deriveTenantKeys(root), logSeed, symmetric: secret(SYMMETRIC_SECRET) };
}

/** The live generations with their private keys, newest first. @throws {WrongMasterKey} */
function unwrapGenerations({ kid, keys }: TenantSnapshot, { masterKey, clock }: TenantDeps) {
  return liveGenerations(keys, clock()).flatMap((key) => {
    if (key.wrappedPrivate === null) return [];
    const privateKey = new Uint8Array(masterKey.unwrap(key.wrappedPrivate, wrapContext(kid, key.generation)));
    return [{ key, privateKey }];
  });
}

type LiveKeys = ReturnType<typeof unwrapGenerations>;

/** From the private key of the published generation: the row's public key could be that of somebody who reads along. */
function publishedKey({ kid, keys }: TenantSnapshot, live: LiveKeys): PubKeyResponse | null {
  const published = keys.find((key) => key.state === 'published');
  if (!published) return null;
  const found = live.find(({ key }) => key.generation === published.generation);
  const publicKey = found && publicKeyOf(found.privateKey);
  if (publicKey === undefined || publicKey !== published.publicKey)
    throw new Error(`the public seal key of ${kid} is not that of its private key: restore a backup`);
  return { kid, alg: ASYMMETRIC_ALG, publicKey };
}

/** The keys that decrypt bundles: each live seal key, and the symmetric key. */
function sealPart(snapshot: TenantSnapshot, symmetric: Buffer | null, deps: TenantDeps) {
  const { kid, createdAt: since } = snapshot;
  const live = unwrapGenerations(snapshot, deps);
  const openerOf = ({ key, privateKey }: LiveKeys[number]): Opener => {
    const open = createOpener(privateKey);
    return (bundle) => {
      const opened = open(bundle);
      if (opened) deps.onOpened({ kid, since }, key.generation);
      return opened;
    };
  };
  const opening = live.map((key) => ({ ...key, open: openerOf(key) }));
  return {
    liveOpeners: () => opening.filter(({ key }) => isLive(key, deps.clock())).map(({ open }) => open),
    symmetricOpener: symmetric && createSymmetricOpener(symmetric),
    // Copies: what is sent to a thread takes the whole of its buffer along.
    sealKeys: {
      generations: live.map(({ key: { generation }, privateKey }) => ({ generation, privateKey })),
      symmetric: symmetric && new Uint8Array(symmetric),
    },
    isLive: (generation: number) =>
      live.some(({ key }) => key.generation === generation && isLive(key, deps.clock())),
    publicKey: publishedKey(snapshot, live),
  };
}

/** The purposes and policies, and the rules that a check is decided by. */
function termsPart({ settings, purposes, consentPolicies, termsMac }: TenantSnapshot, stateMac: StateMac) {
  const terms = new Map([attestationPurpose, ...purposes].map((purpose) => [purpose.id, purpose]));
  const newest = (policies: readonly ConsentPolicy[]): number =>
    Math.max(0, ...policies.map(({ version }) => version));
  const termsOf = (purpose: string): Purpose | undefined => terms.get(purpose);
  const termsFit = macFits(termsMac, stateMac.ofTerms({ purposes, policies: consentPolicies }));
  return {
    purposes,
    policies: consentPolicies,
    termsOf,
    // A row without its MAC is not believed: then every purpose heeds the signal.
    gpcPolicy: (purpose: string): GpcPolicy => (termsFit && terms.get(purpose)?.gpc) || 'opt-out',
    rules: {
      gpcOf: (purpose: string) => terms.get(purpose)?.gpc,
      currentVersion: newest(consentPolicies),
      materialVersion: newest(consentPolicies.filter(({ material }) => material)),
      denyDoubted: settings['consent.byAutomation'] === 'deny',
    },
    termsFit,
  };
}

/** @throws {WrongMasterKey} */
export function createTenant(snapshot: TenantSnapshot, deps: TenantDeps): Tenant {
  const { kid, createdAt: since, revision, settings, apiKeys, webhooks } = snapshot;
  const { keys, logSeed, symmetric } = unwrapSecrets(snapshot, deps);
  const { liveOpeners, ...sealed } = sealPart(snapshot, symmetric, deps);
  const { live = null, shadow = null } = snapshot.policies;
  const stateMac = createStateMac(kid, keys.state);
  const signer = createNoteSigner(snapshot.logOrigin, logSeed);
  const webhooksFor = (event: WebhookEvent): readonly string[] =>
    webhooks.filter(({ events }) => events.includes(event)).map(({ id }) => id);
  return {
    kid,
    since,
    revision,
    settings,
    origins: new Set(settings.origins),
    apiKeys,
    webhooks,
    webhooksFor,
    // A grace may end between two polls: what is live is asked each time.
    get openers() {
      return liveOpeners();
    },
    ...sealed,
    identityKey: keys.identity,
    durableKey: keys.durable,
    // Few, and asked for with every bundle.
    epochKey: memoised(keys.epoch),
    populationKey: settings['transparency.retain'] === 'summary' ? keys.population : null,
    policy: live,
    shadow,
    isMonitor: createMonitorMatcher(live?.monitors ?? { agents: [], networks: [] }),
    decisionWebhooks: webhooksFor('decision.recorded'),
    needsProof: settings['consent.basis'] === 'ledger',
    ...termsPart(snapshot, stateMac),
    principalKey: keys.principal,
    refOf: (principalId) => principalRef(keys.principal, principalId),
    principalWrap: keys.principalWrap,
    wrapper: createMasterKey(keys.principalWrap, deps.random),
    stateMac,
    rightsKey: keys.rights,
    signer,
    receiptKey: {
      publicX: parseVkey(signer.vkey)?.publicKey.toString('base64url') ?? '',
      seed: logSeed.toString('base64url'),
    },
  };
}

/** The operator's own monitors, by Web Bot Auth agent or by address. @throws when a range is invalid */
export function createMonitorMatcher(
  monitors: TenantPolicy['monitors'],
): (agentId: string | null, client: Address | null) => boolean {
  const agents = new Set(monitors.agents);
  const ranges: readonly AddressRange[] = monitors.networks.map(parseRange);
  return (agentId, client) =>
    (agentId !== null && agents.has(agentId)) || (client !== null && inRanges(client, ranges));
}
