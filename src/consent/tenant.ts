import { type MasterKey, makeMasterKey } from '../keys/master-key.ts';
import { makeNoteSigner, type NoteSigner } from '../ledger/note.ts';
import { parseVkey } from '../ledger/vkey.ts';
import type { Random } from '../lib/random.ts';
import type { LogSecret } from '../log/new-log.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import type { TenantSettings } from '../tenants/settings.ts';
import { attestationPurpose, type Purpose, type TenantKeys } from '../tenants/tenant.ts';
import type { ConsentRules } from './decide.ts';
import type { PurposeTerms } from './plan-write.ts';
import { macFits, makeStateMac, type StateMac } from './state-mac.ts';
import type { ConsentPolicy } from './terms-store.ts';

/** What the consent half knows of a tenant; held in memory, at most 5 s behind the database. */
export interface ConsentTenant {
  readonly kid: string;
  /** When it was made: a later one under its kid is another. */
  readonly since: number;
  readonly origins: ReadonlySet<string>;
  readonly principalKey: Uint8Array;
  readonly principalWrap: Uint8Array;
  /** Wraps under that key what names a person. */
  readonly wrapper: MasterKey;
  /** MACs of the rows that a check is answered from. */
  readonly stateMac: StateMac;
  /** Keyed references of receipts, audit rows and tombstones. */
  readonly rightsKey: Uint8Array;
  readonly settings: TenantSettings;
  readonly rules: ConsentRules;
  /** Purposes and policy versions carry their MAC: else nothing is granted, and no check is answered. */
  readonly termsFit: boolean;
  readonly purposes: readonly Purpose[];
  readonly policies: readonly ConsentPolicy[];
  readonly termsOf: (purpose: string) => PurposeTerms | undefined;
  readonly signer: NoteSigner;
  /** See `LogKeys`. */
  readonly checkpointed: boolean;
  /** The log's key again, in the spelling of a JWK. */
  readonly receiptKey: { readonly publicX: string; readonly seed: string };
  /** Of the tenant's last change. */
  readonly revision: number;
  /** Ids of the webhooks that want this event. */
  readonly webhooksFor: (event: WebhookEvent) => readonly string[];
}

type Known = 'kid' | 'since' | 'origins' | 'purposes' | 'policies' | 'settings' | 'revision' | 'webhooksFor';

interface ConsentTenantParts extends Pick<ConsentTenant, Known> {
  readonly keys: TenantKeys;
  readonly termsMac: string | null;
  readonly logOrigin: string;
  readonly ledger: LogSecret;
  readonly random: Random;
}

export function makeConsentTenant(parts: ConsentTenantParts): ConsentTenant {
  const { keys, termsMac, logOrigin, ledger, random, ...known } = parts;
  const { kid, purposes, policies } = known;
  const terms = new Map([attestationPurpose, ...purposes].map((purpose) => [purpose.id, purpose]));
  const versions = policies.map((policy) => policy.version);
  const material = policies.filter((policy) => policy.material).map((policy) => policy.version);
  const stateMac = makeStateMac(kid, keys.state);
  const { seed, checkpointed } = ledger;
  const signer = makeNoteSigner(logOrigin, seed);
  return {
    ...known,
    principalKey: keys.principal,
    principalWrap: keys.principalWrap,
    wrapper: makeMasterKey(keys.principalWrap, random),
    stateMac,
    rightsKey: keys.rights,
    termsFit: macFits(termsMac, stateMac.ofTerms({ purposes, policies })),
    rules: {
      gpcOf: (purpose) => terms.get(purpose)?.gpc,
      currentVersion: Math.max(0, ...versions),
      materialVersion: Math.max(0, ...material),
      denyDoubted: known.settings['consent.byAutomation'] === 'deny',
    },
    termsOf: (purpose) => terms.get(purpose),
    signer,
    checkpointed,
    receiptKey: {
      publicX: parseVkey(signer.vkey)?.publicKey.toString('base64url') ?? '',
      seed: seed.toString('base64url'),
    },
  };
}
