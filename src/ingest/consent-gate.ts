import type { ConsentReceipt } from '../schema/bundle.ts';
import type { ConsentState } from '../schema/responses.ts';

export const NEEDED_PURPOSE = 'device-identification';

export interface GateInput {
  readonly receipt: ConsentReceipt;
  /** `Sec-GPC: 1` on the request. */
  readonly gpcHeader: boolean;
  /** `signals.page.gpc === true`. */
  readonly gpcSignal: boolean;
  readonly gpcPolicy: (purpose: string) => 'opt-out' | 'ignore';
  readonly basis: ConsentState['basis'];
}

export interface GateResult {
  readonly allowed: boolean;
  readonly state: ConsentState;
}

function gpcSource(header: boolean, bundle: boolean): ConsentState['gpcSource'] {
  if (header && bundle) return 'both';
  if (header) return 'header';
  return bundle ? 'bundle' : 'none';
}

/**
 * Each GPC source only ever reduces permission (contract 3.2): it removes every purpose whose policy is opt-out.
 */
export function consentGate(input: GateInput): GateResult {
  const { receipt } = input;
  const inBundle = receipt.gpc || input.gpcSignal;
  const gpc = inBundle || input.gpcHeader;
  const granted = [...new Set(receipt.purposes)];
  const purposes = gpc ? granted.filter((purpose) => input.gpcPolicy(purpose) === 'ignore') : granted;
  const state: ConsentState = {
    purposes,
    gpc,
    gpcSource: gpcSource(input.gpcHeader, inBundle),
    version: receipt.version,
    issuedAt: receipt.issuedAt,
    basis: input.basis,
  };
  return { allowed: purposes.includes(NEEDED_PURPOSE), state };
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
