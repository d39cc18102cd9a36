import { makeMasterKey } from '../keys/master-key.ts';
import { makeNoteSigner, parseVkey } from '../ledger/note.ts';
import { decodeBase64Url, hmacSha256, type Random, sha256Text } from '../lib/crypto.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import type { TenantSettings } from '../tenants/settings.ts';
import { attestationPurpose, type Purpose, type TenantKeys } from '../tenants/tenant.ts';
import type { ConsentRules } from './decide.ts';
import { type ConsentPolicy, macFits, makeStateMac } from './state-mac.ts';

/** What the consent half knows of a tenant; held in memory, at most 5 s behind the database. */
export type ConsentTenant = Readonly<ReturnType<typeof makeConsentTenant>>;

interface ConsentTenantParts {
  readonly kid: string;
  /** When it was made: a later one under its kid is another. */
  readonly since: number;
  readonly origins: ReadonlySet<string>;
  readonly settings: TenantSettings;
  readonly purposes: readonly Purpose[];
  readonly policies: readonly ConsentPolicy[];
  /** Of the tenant's last change. */
  readonly revision: number;
  /** Ids of the webhooks that want this event. */
  readonly webhooksFor: (event: WebhookEvent) => readonly string[];
  readonly keys: TenantKeys;
  readonly termsMac: string | null;
  readonly logOrigin: string;
  /** The seed of the log's key. */
  readonly logSeed: Buffer;
  readonly random: Random;
}

export function makeConsentTenant(parts: ConsentTenantParts) {
  const { keys, termsMac, logOrigin, logSeed, random, ...known } = parts;
  const { kid, purposes, policies } = known;
  const terms = new Map([attestationPurpose, ...purposes].map((purpose) => [purpose.id, purpose]));
  const versions = policies.map((policy) => policy.version);
  const material = policies.filter((policy) => policy.material).map((policy) => policy.version);
  const stateMac = makeStateMac(kid, keys.state);
  const signer = makeNoteSigner(logOrigin, logSeed);
  const rules: ConsentRules = {
    gpcOf: (purpose) => terms.get(purpose)?.gpc,
    currentVersion: Math.max(0, ...versions),
    materialVersion: Math.max(0, ...material),
    denyDoubted: known.settings['consent.byAutomation'] === 'deny',
  };
  return {
    ...known,
    principalKey: keys.principal,
    refOf: (principalId: string) => principalRef(keys.principal, principalId),
    principalWrap: keys.principalWrap,
    /** Wraps under that key what names a person. */
    wrapper: makeMasterKey(keys.principalWrap, random),
    /** MACs of the rows that a check is answered from. */
    stateMac,
    /** Keyed references of receipts, audit rows and tombstones. */
    rightsKey: keys.rights,
    /** Purposes and policy versions carry their MAC: else nothing is granted, and no check is answered. */
    termsFit: macFits(termsMac, stateMac.ofTerms({ purposes, policies })),
    rules,
    termsOf: (purpose: string) => terms.get(purpose),
    signer,
    /** The log's key again, in the spelling of a JWK. */
    receiptKey: {
      publicX: parseVkey(signer.vkey)?.publicKey.toString('base64url') ?? '',
      seed: logSeed.toString('base64url'),
    },
  };
}

/**
 * The keyed reference under which a principal is stored: without the tenant's key it names nobody. In NFC once more:
 * whatever way an id came in by, its spellings have one reference.
 */
export function principalRef(principalKey: Uint8Array, principalId: string): string {
  return hmacSha256(principalKey, principalId.normalize('NFC')).toString('base64url');
}

const SECRET_BYTES = 32;

/** A browser principal's id: `b_` + base64url(SHA-256(its 32 secret bytes)). */
export function browserPrincipalId(principalSecret: string): string | null {
  const bytes = decodeBase64Url(principalSecret);
  return bytes?.length === SECRET_BYTES ? `b_${sha256Text(bytes)}` : null;
}
