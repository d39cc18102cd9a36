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
import { attestationPurpose, type ConsentPolicy, type DefinedPurpose } from './purposes.ts';
import type { TenantSettings } from './settings.ts';
import { createStateMac, isMacValid, type StateMac } from './state-mac.ts';
import type { TenantPolicies, Webhook } from './tenant-store.ts';

/**
 * Turns the stored rows of a tenant into the value that requests work with: keys unwrapped,
 * settings parsed, openers ready. The directory calls createTenant for each tenant that changed.
 */

/** The rules of consent that the tenant has defined. */
export interface ConsentRules {
  /** Undefined for an unknown purpose. */
  readonly termsOf: (purpose: string) => DefinedPurpose | undefined;
  /** The version of the last policy; 0 if none was published. */
  readonly currentVersion: number;
  /** The version of the last policy with a material change. */
  readonly materialVersion: number;
  /** The setting `consent.byAutomation` is `deny`. */
  readonly deniesDoubted: boolean;
}

/** The live seal keys in the form that is sent to the thread which decrypts. */
export interface SealKeys {
  /** Newest first; `privateKey` is the 32-byte P-256 scalar. */
  readonly generations: readonly { readonly generation: number; readonly privateKey: Uint8Array }[];
  readonly symmetric: Uint8Array | null;
}

/** The rows of a tenant; its secrets are still wrapped. */
export interface TenantSnapshot {
  readonly kid: string;
  readonly createdAt: number;
  readonly settings: TenantSettings;
  /** The revision of its last change. */
  readonly revision: number;
  /** Wrapped secrets by their purpose. */
  readonly secrets: ReadonlyMap<string, string>;
  readonly keys: readonly Generation[];
  readonly purposes: readonly DefinedPurpose[];
  readonly consentPolicies: readonly ConsentPolicy[];
  /** The MAC over the purposes and policies. */
  readonly termsMac: string | null;
  readonly apiKeys: readonly ApiKey[];
  readonly webhooks: readonly Webhook[];
  /** The name of the tenant's log. */
  readonly logOrigin: string;
  readonly policies: TenantPolicies;
}

/** A tenant with its keys unwrapped, for all rooms. It stays in memory, at most 5 s behind the database. */
export interface Tenant {
  readonly kid: string;
  /** The creation time: a later tenant with the same kid is another one. */
  readonly since: number;
  /** The revision of its last change. */
  readonly revision: number;
  readonly settings: TenantSettings;
  readonly origins: ReadonlySet<string>;
  readonly apiKeys: readonly ApiKey[];
  readonly webhooks: readonly Webhook[];
  /** The ids of the webhooks that are registered for this event. */
  readonly webhooksFor: (event: WebhookEvent) => readonly string[];

  /** Live seal keys, newest first. */
  readonly openers: readonly { readonly generation: number; readonly open: Opener }[];
  /** Null if the tenant has no symmetric key. */
  readonly symmetricOpener: Opener | null;
  readonly sealKeys: SealKeys;
  /** True if bundles that are sealed to this generation are still decrypted. */
  readonly isLive: (generation: number) => boolean;
  /** Null if no generation is published. */
  readonly publicKey: PubKeyResponse | null;

  readonly identityKey: Uint8Array;
  readonly durableKey: Uint8Array;
  readonly epochKey: (epoch: number) => Uint8Array;
  /**
   * With `transparency.retain = "summary"`, values of signals are
   * counted under this key. Null: nothing of signals is stored.
   */
  readonly populationKey: Uint8Array | null;
  /** The tenant's changes to the table of rules; null if it has none. */
  readonly policy: TenantPolicy | null;
  /** Changes that are only tried out: their results are counted, never answered. */
  readonly shadow: TenantPolicy | null;
  /** True for a Web Bot Auth agent or an address that the operator declared as a monitor. */
  readonly isMonitor: (agentId: string | null, client: Address | null) => boolean;
  /** The ids of the webhooks that get every decision. */
  readonly decisionWebhooks: readonly string[];
  /** True if consent must be proven by the tenant's ledger (contract 3.3). */
  readonly needsProof: boolean;

  readonly purposes: readonly DefinedPurpose[];
  readonly policies: readonly ConsentPolicy[];
  readonly termsOf: (purpose: string) => DefinedPurpose | undefined;
  /** The effect of a GPC signal on a purpose; an unknown purpose is `opt-out`. */
  readonly gpcPolicy: (purpose: string) => GpcPolicy;
  readonly rules: ConsentRules;
  /** False if the MAC of purposes and policies is wrong: nothing is granted, and no check is answered. */
  readonly areTermsAuthentic: boolean;
  readonly principalKey: Uint8Array;
  /** Computes the keyed reference of a principal. */
  readonly refOf: (principalId: string) => string;
  readonly principalWrap: Uint8Array;
  /** Wraps texts that name a person, with the key `principalWrap`. */
  readonly wrapper: MasterKey;
  /** Authenticates the rows from which a consent check is answered. */
  readonly stateMac: StateMac;
  /** Computes the keyed references in receipts, audit rows and tombstones. */
  readonly rightsKey: Uint8Array;
  /** The export key is derived from it. */
  readonly evidenceSecret: Uint8Array;
  /** Signs the checkpoints of the tenant's log. */
  readonly signer: NoteSigner;
  /** The key of `signer`, in the form of a JWK. */
  readonly receiptKey: { readonly publicX: string; readonly seed: string };
}

/**
 * Computes the keyed reference under which a principal is stored; without
 * the tenant's key it identifies nobody. The id is normalised to NFC here
 * too, so that all spellings of it have one reference, however it came in.
 */
export function principalRef(principalKey: Uint8Array, principalId: string): string {
  return hmacSha256(principalKey, principalId.normalize('NFC')).toString('base64url');
}

export interface TenantDeps {
  readonly masterKey: MasterKey;
  readonly clock: Clock;
  readonly random: Random;
}

/** @throws {WrongMasterKey} */
function unwrapSecrets({ kid, secrets, logOrigin }: TenantSnapshot, { masterKey }: TenantDeps) {
  const unwrapSecret = (purpose: string): Buffer | null => {
    const wrapped = secrets.get(purpose);
    return wrapped === undefined ? null : masterKey.unwrap(wrapped, tenantSecretContext(kid, purpose));
  };
  const root = unwrapSecret(ROOT_SECRET);
  const logSeed = unwrapSecret(LEDGER_SECRET);
  if (!root || !logSeed) throw new Error('a tenant has lost its root secret or the key of its log');
  if (logOrigin === '') throw new Error(`the tenant ${kid} has lost its log: restore a backup`);
  return { keys: deriveTenantKeys(root), logSeed, symmetric: unwrapSecret(SYMMETRIC_SECRET) };
}

/** @returns the live generations with their private keys, newest first @throws {WrongMasterKey} */
function unwrapGenerations({ kid, keys }: TenantSnapshot, { masterKey, clock }: TenantDeps) {
  return liveGenerations(keys, clock()).flatMap((key) => {
    if (key.wrappedPrivate === null) return [];
    const privateKey = new Uint8Array(masterKey.unwrap(key.wrappedPrivate, wrapContext(kid, key.generation)));
    return [{ key, privateKey }];
  });
}

type LiveKeys = ReturnType<typeof unwrapGenerations>;

/**
 * Computes the public key from the private one, because the public
 * key in the row could have been replaced by an attacker's.
 */
function readPublishedKey({ kid, keys }: TenantSnapshot, live: LiveKeys): PubKeyResponse | null {
  const published = keys.find((key) => key.state === 'published');
  if (!published) return null;
  const found = live.find(({ key }) => key.generation === published.generation);
  const publicKey = found && publicKeyOf(found.privateKey);
  if (publicKey === undefined || publicKey !== published.publicKey)
    throw new Error(`the public seal key of ${kid} is not that of its private key: restore a backup`);
  return { kid, alg: ASYMMETRIC_ALG, publicKey };
}

/** The part of a tenant that decrypts bundles. */
function createSealPart(snapshot: TenantSnapshot, symmetric: Buffer | null, deps: TenantDeps) {
  const live = unwrapGenerations(snapshot, deps);
  const openers = live.map(({ key, privateKey }) => {
    return { key, generation: key.generation, open: createOpener(privateKey) };
  });
  return {
    liveOpeners: () => openers.filter(({ key }) => isLive(key, deps.clock())),
    symmetricOpener: symmetric && createSymmetricOpener(symmetric),
    // Keys are copied into separate buffers: a message to a thread takes the whole underlying buffer along.
    sealKeys: {
      generations: live.map(({ key: { generation }, privateKey }) => ({ generation, privateKey })),
      symmetric: symmetric && new Uint8Array(symmetric),
    },
    isLive: (generation: number) =>
      live.some(({ key }) => key.generation === generation && isLive(key, deps.clock())),
    publicKey: readPublishedKey(snapshot, live),
  };
}

/** The part of a tenant from which consent is decided. */
function createTermsPart(
  { settings, purposes, consentPolicies, termsMac }: TenantSnapshot,
  stateMac: StateMac,
) {
  const terms = new Map([attestationPurpose, ...purposes].map((purpose) => [purpose.id, purpose]));
  const newestVersion = (policies: readonly ConsentPolicy[]): number =>
    Math.max(0, ...policies.map(({ version }) => version));
  const termsOf = (purpose: string): DefinedPurpose | undefined => terms.get(purpose);
  const areTermsAuthentic = isMacValid(termsMac, stateMac.ofTerms({ purposes, policies: consentPolicies }));
  return {
    purposes,
    policies: consentPolicies,
    termsOf,
    // If the MAC does not match, every purpose respects the GPC signal.
    gpcPolicy: (purpose: string): GpcPolicy => (areTermsAuthentic && terms.get(purpose)?.gpc) || 'opt-out',
    rules: {
      termsOf,
      currentVersion: newestVersion(consentPolicies),
      materialVersion: newestVersion(consentPolicies.filter(({ material }) => material)),
      deniesDoubted: settings['consent.byAutomation'] === 'deny',
    },
    areTermsAuthentic,
  };
}

/** @throws {WrongMasterKey} */
export function createTenant(snapshot: TenantSnapshot, deps: TenantDeps): Tenant {
  const { kid, createdAt: since, revision, settings, apiKeys, webhooks } = snapshot;
  const { keys, logSeed, symmetric } = unwrapSecrets(snapshot, deps);
  const { liveOpeners, ...sealed } = createSealPart(snapshot, symmetric, deps);
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
    // A grace period can end between two polls, so this is computed for each bundle.
    get openers() {
      return liveOpeners();
    },
    ...sealed,
    identityKey: keys.identity,
    durableKey: keys.durable,
    // Every bundle needs it, and there are only a few epochs.
    epochKey: memoised(keys.epoch),
    populationKey: settings['transparency.retain'] === 'summary' ? keys.population : null,
    policy: live,
    shadow,
    isMonitor: createMonitorMatcher(live?.monitors ?? { agents: [], networks: [] }),
    decisionWebhooks: webhooksFor('decision.recorded'),
    needsProof: settings['consent.basis'] === 'ledger',
    ...createTermsPart(snapshot, stateMac),
    principalKey: keys.principal,
    refOf: (principalId) => principalRef(keys.principal, principalId),
    principalWrap: keys.principalWrap,
    wrapper: createMasterKey(keys.principalWrap, deps.random),
    stateMac,
    rightsKey: keys.rights,
    evidenceSecret: keys.evidence,
    signer,
    receiptKey: {
      publicX: parseVkey(signer.vkey)?.publicKey.toString('base64url') ?? '',
      seed: logSeed.toString('base64url'),
    },
  };
}

/**
 * @returns a function that recognises a monitor by its Web Bot Auth agent or its address
 * @throws {Error} if a range is invalid
 */
export function createMonitorMatcher(
  monitors: TenantPolicy['monitors'],
): (agentId: string | null, client: Address | null) => boolean {
  const agents = new Set(monitors.agents);
  const ranges: readonly AddressRange[] = monitors.networks.map(parseRange);
  return (agentId, client) =>
    (agentId !== null && agents.has(agentId)) || (client !== null && inRanges(client, ranges));
}
