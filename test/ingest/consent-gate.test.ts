import { describe, expect, it } from 'vitest';
import { consentGate, NO_CONSENT_STATE } from '../../src/ingest/consent-gate.ts';
import type { ConsentReceipt } from '../../src/schema/bundle.ts';
import { consentStateSchema } from '../../src/schema/responses.ts';
import type { Tenant } from '../../src/tenants/tenant.ts';
import { createReceipt } from '../support/make.ts';

const DEVICE = 'device-identification';

interface Given {
  readonly receipt?: ConsentReceipt;
  readonly inHeader?: boolean;
  readonly inSignals?: boolean;
  readonly gpcPolicy?: Tenant['gpcPolicy'];
}

const gate = ({
  receipt = createReceipt(),
  inHeader = false,
  inSignals = false,
  gpcPolicy = () => 'opt-out',
}: Given = {}) =>
  consentGate({ kid: 'acme', needsProof: false, gpcPolicy }, receipt, { inHeader, inSignals });

const flags = [false, true] as const;
const sources = flags.flatMap((header) =>
  flags.flatMap((receipt) => flags.map((signal) => ({ header, receipt, signal }))),
);

describe('every source of GPC', () => {
  it.each(sources)('header $header, receipt $receipt, signal $signal', ({ header, receipt, signal }) => {
    const input = { inHeader: header, inSignals: signal, receipt: createReceipt({ gpc: receipt }) };
    const { isAllowed, asserted } = gate(input);
    const gpc = header || receipt || signal;
    const inBundle = receipt || signal;
    const gpcSource = header && inBundle ? 'both' : header ? 'header' : inBundle ? 'bundle' : 'none';
    expect(isAllowed).toBe(!gpc);
    expect(asserted).toMatchObject({ gpc, gpcSource, purposes: gpc ? [] : [DEVICE] });
    // A policy that ignores GPC still reports the signal.
    const ignoring = gate({ ...input, gpcPolicy: () => 'ignore' });
    expect(ignoring.isAllowed).toBe(true);
    expect(ignoring.asserted).toMatchObject({ gpc, gpcSource, purposes: [DEVICE] });
  });
});

describe('consentGate', () => {
  it('hands on a claim that a person overruled GPC, where the policy is ask and the bundle brings a proof', () => {
    const claim = { principalId: 'b_1', proof: { seq: 1, hash: 'a'.repeat(64) } };
    const policies = { [DEVICE]: 'ask', ads: 'opt-out', fraud: 'ignore' } as const;
    const gpcPolicy: Tenant['gpcPolicy'] = (purpose) => policies[purpose as keyof typeof policies];
    const receipt = createReceipt({ purposes: [DEVICE, 'ads', 'fraud'], gpc: true, ...claim });
    expect(gate({ receipt, gpcPolicy })).toMatchObject({
      isAllowed: true,
      overGpc: [DEVICE],
      // The response names no purpose before its consent is proven.
      asserted: { purposes: ['fraud'] },
    });
    for (const missing of ['principalId', 'proof'] as const) {
      const { [missing]: _, ...rest } = receipt;
      expect(gate({ receipt: rest, gpcPolicy }), missing).toMatchObject({ isAllowed: false, overGpc: [] });
    }
    const off = gate({ receipt: { ...receipt, gpc: false }, gpcPolicy });
    expect(off).toMatchObject({ overGpc: [], asserted: { purposes: receipt.purposes } });
  });

  it('removes the opt-out purposes under GPC, and no other', () => {
    const receipt = createReceipt({ purposes: ['fraud', DEVICE, 'ads', 'never-defined'], gpc: true });
    const gpcPolicy = (purpose: string) => (purpose === 'fraud' ? 'ignore' : 'opt-out');
    expect(gate({ receipt, gpcPolicy }).asserted.purposes).toEqual(['fraud']);
    expect(gate({ receipt: { ...receipt, gpc: false }, gpcPolicy }).asserted.purposes).toEqual(
      receipt.purposes,
    );
  });

  it.each<[string, string[], boolean]>([
    ['granted', [DEVICE], true],
    ['granted among others', ['ads', DEVICE], true],
    ['granted twice', [DEVICE, DEVICE], true],
    ['nothing granted', [], false],
    ['something else granted', ['ads'], false],
    ['almost granted', ['Device-Identification', 'device-identification ', 'device_identification'], false],
  ])('%s', (_what, purposes, allowed) => {
    expect(gate({ receipt: createReceipt({ purposes }) }).isAllowed).toBe(allowed);
  });

  it('tells each purpose once', () => {
    expect(gate({ receipt: createReceipt({ purposes: [DEVICE, 'ads', DEVICE] }) }).asserted.purposes).toEqual(
      [DEVICE, 'ads'],
    );
  });

  it('carries version and time over, and only asserts them', () => {
    const { asserted } = gate({ receipt: createReceipt({ version: 7, issuedAt: 42 }) });
    expect(asserted).toMatchObject({ version: 7, issuedAt: 42, basis: 'asserted' });
    expect(consentStateSchema.parse(asserted)).toEqual(asserted);
  });

  it('leaves proof and principal out of what is answered and kept', () => {
    const receipt = createReceipt({ principalId: 'u-1', proof: { seq: 1, hash: 'a'.repeat(64) } });
    expect(Object.keys(gate({ receipt }).asserted).sort()).toEqual(
      ['basis', 'gpc', 'gpcSource', 'issuedAt', 'purposes', 'version'].sort(),
    );
  });
});

describe('the consent state of a bundle that did not open', () => {
  it('is nothing', () => {
    expect(consentStateSchema.parse(NO_CONSENT_STATE)).toEqual({
      purposes: [],
      gpc: false,
      gpcSource: 'none',
      version: 0,
      issuedAt: 0,
      basis: 'asserted',
    });
  });
});
