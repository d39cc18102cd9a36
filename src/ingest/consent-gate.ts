import type { ConsentReceipt } from '../schema/bundle.ts';
import type { GpcPolicy } from '../schema/gpc.ts';
import type { ConsentState } from '../schema/responses.ts';

export const NEEDED_PURPOSE = 'device-identification';

export interface GateInput {
  readonly receipt: ConsentReceipt;
  /** `Sec-GPC: 1` on the request. */
  readonly gpcHeader: boolean;
  /** `signals.page.gpc === true`. */
  readonly gpcSignal: boolean;
  readonly gpcPolicy: (purpose: string) => GpcPolicy;
  readonly basis: ConsentState['basis'];
}

function gpcSource(header: boolean, bundle: boolean): ConsentState['gpcSource'] {
  if (header && bundle) return 'both';
  if (header) return 'header';
  return bundle ? 'bundle' : 'none';
}

/**
 * Each GPC source only ever reduces permission (contract 3.2): it removes every purpose whose policy is not `ignore`. A claim
 * for one whose policy is `ask` is handed on with what the bundle brings to prove it (contract-2 section 13).
 * @returns `allowed` as far as the bundle says; `overGpc`: purposes whose policy is `ask`, which survive GPC only if the ledger
 * proves a grant over it
 */
export function consentGate(input: GateInput) {
  const { receipt } = input;
  const inBundle = receipt.gpc || input.gpcSignal;
  const gpc = inBundle || input.gpcHeader;
  const granted = [...new Set(receipt.purposes)];
  const under = (policy: GpcPolicy) => granted.filter((purpose) => input.gpcPolicy(purpose) === policy);
  const purposes = gpc ? under('ignore') : granted;
  const overGpc = gpc && receipt.principalId && receipt.proof ? under('ask') : [];
  const state: ConsentState = {
    purposes,
    gpc,
    gpcSource: gpcSource(input.gpcHeader, inBundle),
    version: receipt.version,
    issuedAt: receipt.issuedAt,
    basis: input.basis,
  };
  return { allowed: [...purposes, ...overGpc].includes(NEEDED_PURPOSE), overGpc, state };
}

/** What is said of a bundle that did not open: nothing is known, so nothing was granted. */
export const NO_CONSENT_STATE: ConsentState = {
  purposes: [],
  gpc: false,
  gpcSource: 'none',
  version: 0,
  issuedAt: 0,
  basis: 'asserted',
};
