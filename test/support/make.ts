import { createHash } from 'node:crypto';
import type { NonceClaim, RecordEntry, ShadowVerdict } from '../../src/ingest/ports.ts';
import type { Verdict } from '../../src/ingest/verdict/verdict.ts';
import type { Generation } from '../../src/keys/generation.ts';
import {
  createMasterKey,
  LEDGER_SECRET,
  ROOT_SECRET,
  tenantSecretContext,
} from '../../src/keys/master-key.ts';
import { type Random, sha256 } from '../../src/lib/crypto.ts';
import type { ConsentReceipt, Plaintext } from '../../src/schema/bundle.ts';
import type { ConsentState } from '../../src/schema/responses.ts';
import { createOpener } from '../../src/seal/open.ts';
import { tenantSettingsSchema } from '../../src/tenants/settings.ts';
import { createTenant, type Tenant, type TenantSnapshot } from '../../src/tenants/tenant.ts';
import type { NewTenant } from '../../src/tenants/tenant-store.ts';
import { createRawSignals } from './make-signals.ts';

/** Builders of tenants, entries, keys and random bytes for tests. */

/** 20 November 2025 in epoch milliseconds; all fixtures use it as the current time. */
export const NOW = 1_763_630_000_000;
/** The day of NOW, counted from 1970. */
export const DAY = 20_412;

/** Creates reproducible bytes: SHA-256 in counter mode over the seed. */
export function seededRandom(seed: string): Random {
  let counter = 0;
  return (size) => {
    const blocks: Buffer[] = [];
    for (let length = 0; length < size; length += 32) {
      blocks.push(createHash('sha256').update(`${seed} ${counter}`).digest());
      counter += 1;
    }
    return Buffer.concat(blocks).subarray(0, size);
  };
}

/** Returns TEST_SEED or a new seed for a random test, and prints it, so that a failure can be repeated. */
export function announcedSeed(suite: string): string {
  const seed = process.env['TEST_SEED'] ?? String(Date.now());
  process.stderr.write(`${suite}: TEST_SEED=${seed}\n`);
  return seed;
}

export function createGenerationRow(over: Partial<Generation> = {}): Generation {
  return {
    kid: 'acme',
    generation: 1,
    state: 'published',
    publicKey: 'BA==',
    wrappedPrivate: 'wrapped-1',
    createdAt: NOW,
    publishedAt: NOW,
    retiresAt: null,
    destroyedAt: null,
    ...over,
  };
}

/** Creates a tenant for `insertTenant`. Its keys are plain texts, because stores do not read them. */
export function createNewTenant(kid: string, over: Partial<NewTenant> = {}): NewTenant {
  return {
    tenant: {
      kid,
      createdAt: NOW,
      settings: tenantSettingsSchema.parse({ origins: ['https://shop.example'] }),
    },
    secrets: { root: `root of ${kid}` },
    key: createGenerationRow({ kid }),
    ...over,
  };
}

export function createConsentState(over: Partial<ConsentState> = {}): ConsentState {
  return {
    purposes: ['device-identification'],
    gpc: false,
    gpcSource: 'none',
    version: 3,
    issuedAt: NOW - 10_000,
    basis: 'asserted',
    ...over,
  };
}

export function createVerdict(over: Partial<Verdict> = {}): Verdict {
  return {
    requestId: 'req_01KAG0000000000000000000AA',
    decidedAt: NOW,
    class: 'human',
    durable: 'durable-1',
    epoch: 680,
    confidence: 0.6,
    suspectScore: 0,
    smartSignals: { bot: false, incognito: false, tampered: false, inconsistency: 0 },
    needsAttestation: false,
    declaredAgentId: null,
    consentState: createConsentState(),
    rules: [],
    defenses: [],
    overridden: false,
    monitor: false,
    incomplete: false,
    policyVersion: 'test',
    ...over,
  };
}

export interface EntryOptions {
  readonly kid: string;
  /** The id of the request, and also the nonce unless `nonce` is set. */
  readonly id: string;
  readonly nonce?: string;
  /** Null if no device was identified. */
  readonly durable?: string | null;
  readonly epoch?: number;
  readonly epochEndsAt?: number;
  /** The salted hash of the client's network. */
  readonly network?: string;
  readonly day?: number;
  readonly marked?: boolean;
  readonly shadow?: ShadowVerdict;
  readonly webhooks?: readonly string[];
  readonly decidedAt?: number;
  /** The time in the bundle. */
  readonly datedAt?: number;
  readonly summary?: RecordEntry['summary'];
  readonly verdict?: Partial<Verdict>;
}

/** An entry with the nonce claim that is written before it. */
export type TestEntry = RecordEntry & { readonly claim: NonceClaim };

export function createEntry(options: EntryOptions): TestEntry {
  const { kid, id, durable = 'durable-1', epoch = 680, decidedAt = NOW } = options;
  const visitorId = sha256(`${kid} ${durable} ${epoch}`).toString('base64url').slice(0, 22);
  const { epochEndsAt = (epoch + 1) * 30 * 86_400_000 } = options;
  const { network = 'network-1', day = DAY, marked = false } = options;
  return {
    kid,
    claim: {
      kid,
      since: NOW,
      nonce: options.nonce ?? `nonce-${id}`,
      datedAt: options.datedAt ?? NOW,
    },
    identified: durable === null ? null : { durable, visitorId, epoch, epochEndsAt, network, day, marked },
    shadow: options.shadow ?? null,
    summary: options.summary ?? null,
    webhooks: options.webhooks ?? [],
    verdict: createVerdict({
      requestId: `req_${id}`,
      decidedAt,
      durable,
      epoch: durable === null ? null : epoch,
      ...options.verdict,
    }),
    salt: sha256(id).subarray(0, 16).toString('base64url'),
  };
}

export function createReceipt(over: Partial<ConsentReceipt> = {}): ConsentReceipt {
  return { purposes: ['device-identification'], gpc: false, version: 3, issuedAt: NOW - 10_000, ...over };
}

export function makePlaintext(over: Partial<Plaintext> = {}): Plaintext {
  return {
    v: 1,
    nonce: 'AAECAwQFBgcICQoLDA0ODw',
    clientTs: NOW,
    consent: createReceipt(),
    signals: createRawSignals(),
    ...over,
  };
}

/** Creates a complete tenant with keys that are derived from its kid. */
export function createTestTenant(kid: string, over: Partial<TenantSnapshot> = {}): Tenant {
  const random = seededRandom(kid);
  const masterKey = createMasterKey(sha256('master key'), random);
  const wrapped = (purpose: string, secret: Buffer) =>
    [purpose, masterKey.wrap(secret, tenantSecretContext(kid, purpose))] as const;
  const snapshot: TenantSnapshot = {
    ...createNewTenant(kid).tenant,
    revision: 1,
    secrets: new Map([wrapped(ROOT_SECRET, sha256(kid)), wrapped(LEDGER_SECRET, sha256(`seed of ${kid}`))]),
    keys: [],
    purposes: [],
    consentPolicies: [],
    termsMac: null,
    apiKeys: [],
    webhooks: [],
    logOrigin: `gpd.example/ledger/${kid}`,
    policies: {},
    ...over,
  };
  return createTenant(snapshot, { masterKey, clock: () => NOW, random });
}

/** Creates a tenant for the ingest. @param scalars the private keys of its live generations, newest first */
export function createIngestTenant(scalars: readonly Buffer[] = [], over: Partial<Tenant> = {}): Tenant {
  return {
    ...createTestTenant('acme'),
    origins: new Set(['https://shop.example']),
    openers: scalars.map((scalar, i) => ({ generation: scalars.length - i, open: createOpener(scalar) })),
    identityKey: sha256('identity'),
    durableKey: sha256('durable'),
    epochKey: (epoch) => sha256(`epoch ${epoch}`),
    refOf: (principalId) => `ref of ${principalId}`,
    gpcPolicy: () => 'opt-out',
    ...over,
  };
}
