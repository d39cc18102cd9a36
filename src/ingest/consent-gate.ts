import type { GrantClaim } from '../consent/doubts-store.ts';
import type { ProveConsent } from '../consent/proven-purposes-service.ts';
import type { ConsentReceipt } from '../schema/bundle.ts';
import type { GpcPolicy } from '../schema/gpc.ts';
import type { ConsentState } from '../schema/responses.ts';
import type { Tenant } from '../tenants/tenant.ts';

/**
 * Reads the consent that a bundle asserts, removes the purposes that Global Privacy Control refuses, and asks
 * the tenant's ledger for proof.
 */

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

/** The grant that the bundle names; null without one. */
function claimedGrantOf(kid: string, { principalId, proof }: ConsentReceipt): GrantClaim | null {
  if (principalId === undefined || proof === undefined) return null;
  return { kid, principalId, purpose: NEEDED_PURPOSE, proof };
}

type GatedConsent = ReturnType<typeof consentGate>;

/**
 * Each GPC source only ever reduces permission (contract 3.2): it removes every purpose whose policy is not
 * `ignore`. A purpose whose policy is `ask` is passed on with the bundle's claim of a grant (contract-2
 * section 13).
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
    /** This looks only at the bundle; the ledger is asked later. */
    isAllowed: purposes.includes(NEEDED_PURPOSE) || overGpc.includes(NEEDED_PURPOSE),
    /** Until the ledger has been asked, the bundle's consent is only asserted. */
    asserted,
    claimedGrant,
    overGpc,
    mustProve: tenant.needsProof || overGpc.length > 0,
  };
}

/**
 * The consent under which a verdict may be made. For a tenant that requires proof an assertion is not enough
 * (contract 3.3), and for a yes over GPC it never is.
 * @returns null if the needed purpose is not proven
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
