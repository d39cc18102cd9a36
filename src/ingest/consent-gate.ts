import type { GrantClaim } from '../consent/doubts-store.ts';
import type { ProveConsent } from '../consent/proven-purposes-service.ts';
import type { ConsentReceipt } from '../schema/bundle.ts';
import type { GpcPolicy } from '../schema/gpc.ts';
import type { ConsentState } from '../schema/responses.ts';
import type { Tenant } from '../tenants/tenant.ts';

/** The consent that a bundle asserts, what Global Privacy Control leaves of it, and what the tenant's ledger proves of it. */

export const NEEDED_PURPOSE = 'device-identification';

/** The consent state of a bundle that did not open: nothing is known, so nothing was granted. */
export const NO_CONSENT_STATE: ConsentState = {
  purposes: [],
  gpc: false,
  gpcSource: 'none',
  version: 0,
  issuedAt: 0,
  basis: 'asserted',
};

interface GpcSignals {
  /** `Sec-GPC: 1` on the request. */
  readonly inHeader: boolean;
  /** `signals.page.gpc === true`. */
  readonly inSignals: boolean;
}

function gpcSource(header: boolean, bundle: boolean): ConsentState['gpcSource'] {
  if (header && bundle) return 'both';
  if (header) return 'header';
  return bundle ? 'bundle' : 'none';
}

/** The grant that the bundle names; null where it names none. */
function claimedGrantOf(kid: string, { principalId, proof }: ConsentReceipt): GrantClaim | null {
  if (principalId === undefined || proof === undefined) return null;
  return { kid, principalId, purpose: NEEDED_PURPOSE, proof };
}

type GatedConsent = ReturnType<typeof consentGate>;

/**
 * Each GPC source only ever reduces permission (contract 3.2): it removes every purpose whose policy is not `ignore`. A claim
 * for one whose policy is `ask` is handed on with what the bundle brings to prove it (contract-2 section 13).
 */
export function consentGate(
  tenant: Pick<Tenant, 'kid' | 'gpcPolicy' | 'needsProof'>,
  receipt: ConsentReceipt,
  { inHeader, inSignals }: GpcSignals,
) {
  const inBundle = receipt.gpc || inSignals;
  const gpc = inBundle || inHeader;
  const granted = [...new Set(receipt.purposes)];
  const under = (policy: GpcPolicy) => granted.filter((purpose) => tenant.gpcPolicy(purpose) === policy);
  const purposes = gpc ? under('ignore') : granted;
  const claimedGrant = claimedGrantOf(tenant.kid, receipt);
  /** Purposes whose policy is `ask`: they survive GPC only if the ledger proves a grant over it. */
  const overGpc = gpc && claimedGrant ? under('ask') : [];
  const asserted: ConsentState = {
    purposes,
    gpc,
    gpcSource: gpcSource(inHeader, inBundle),
    version: receipt.version,
    issuedAt: receipt.issuedAt,
    basis: 'asserted',
  };
  return {
    /** The bundle alone is asked here, not yet the ledger. */
    isAllowed: purposes.includes(NEEDED_PURPOSE) || overGpc.includes(NEEDED_PURPOSE),
    /** Until the ledger has been asked, what a bundle says is only asserted. */
    asserted,
    claimedGrant,
    overGpc,
    mustProve: tenant.needsProof || overGpc.length > 0,
  };
}

/**
 * The consent that a verdict is made under: a tenant that wants proof gets none on an assertion (contract 3.3), and nobody gets one
 * on an assertion that a person overruled GPC. Null: the needed purpose is not proven.
 */
export async function proveConsent(
  ledger: { readonly proveConsent: ProveConsent },
  { needsProof }: Pick<Tenant, 'needsProof'>,
  { claimedGrant, asserted, overGpc }: GatedConsent,
): Promise<ConsentState | null> {
  if (!claimedGrant) return null;
  const claimed = [...asserted.purposes, ...overGpc];
  const proven = new Set(await ledger.proveConsent({ ...claimedGrant, purposes: claimed, overGpc }));
  const acceptedWithoutProof = new Set(needsProof ? [] : asserted.purposes);
  const purposes = claimed.filter((purpose) => proven.has(purpose) || acceptedWithoutProof.has(purpose));
  if (!purposes.includes(NEEDED_PURPOSE)) return null;
  return { ...asserted, purposes, basis: needsProof ? 'proven' : 'asserted' };
}
