import { describe, expect, it } from 'vitest';
import { consentGate, type GateInput, NO_CONSENT_STATE } from '../../src/ingest/consent-gate.ts';
import { consentStateSchema } from '../../src/schema/responses.ts';
import { makeReceipt } from '../support/make.ts';

const DEVICE = 'device-identification';

const gate = (over: Partial<GateInput> = {}) =>
  consentGate({
    receipt: makeReceipt(),
    gpcHeader: false,
    gpcSignal: false,
    gpcPolicy: () => 'opt-out',
    basis: 'asserted',
    ...over,
  });

const flags = [false, true] as const;
const sources = flags.flatMap((header) =>
  flags.flatMap((receipt) => flags.map((signal) => ({ header, receipt, signal }))),
);

describe('every source of GPC', () => {
  it.each(sources)('header $header, receipt $receipt, signal $signal', ({ header, receipt, signal }) => {
    const input = { gpcHeader: header, gpcSignal: signal, receipt: makeReceipt({ gpc: receipt }) };
    const { allowed, state } = gate(input);
    const gpc = header || receipt || signal;
    const inBundle = receipt || signal;
    const gpcSource = header && inBundle ? 'both' : header ? 'header' : inBundle ? 'bundle' : 'none';
    expect(allowed).toBe(!gpc);
    expect(state).toMatchObject({ gpc, gpcSource, purposes: gpc ? [] : [DEVICE] });
    // Where the policy ignores GPC, it is still told.
    const ignoring = gate({ ...input, gpcPolicy: () => 'ignore' });
    expect(ignoring.allowed).toBe(true);
    expect(ignoring.state).toMatchObject({ gpc, gpcSource, purposes: [DEVICE] });
  });
});

describe('consentGate', () => {
  it('hands on a claim that a person overruled GPC, where the policy is ask and the bundle brings a proof', () => {
    const claim = { principalId: 'b_1', proof: { seq: 1, hash: 'a'.repeat(64) } };
    const policies = { [DEVICE]: 'ask', ads: 'opt-out', fraud: 'ignore' } as const;
    const gpcPolicy: GateInput['gpcPolicy'] = (purpose) => policies[purpose as keyof typeof policies];
    const receipt = makeReceipt({ purposes: [DEVICE, 'ads', 'fraud'], gpc: true, ...claim });
    expect(gate({ receipt, gpcPolicy })).toMatchObject({
      allowed: true,
      overGpc: [DEVICE],
      // What is not proven yet is not told.
      state: { purposes: ['fraud'] },
    });
    for (const missing of ['principalId', 'proof'] as const) {
      const { [missing]: _, ...rest } = receipt;
      expect(gate({ receipt: rest, gpcPolicy }), missing).toMatchObject({ allowed: false, overGpc: [] });
    }
    const off = gate({ receipt: { ...receipt, gpc: false }, gpcPolicy });
    expect(off).toMatchObject({ overGpc: [], state: { purposes: receipt.purposes } });
  });

  it('removes the opt-out purposes under GPC, and no other', () => {
    const receipt = makeReceipt({ purposes: ['fraud', DEVICE, 'ads', 'never-defined'], gpc: true });
    const gpcPolicy = (purpose: string) => (purpose === 'fraud' ? 'ignore' : 'opt-out');
    expect(gate({ receipt, gpcPolicy }).state.purposes).toEqual(['fraud']);
    expect(gate({ receipt: { ...receipt, gpc: false }, gpcPolicy }).state.purposes).toEqual(receipt.purposes);
  });

  it.each<[string, string[], boolean]>([
    ['granted', [DEVICE], true],
    ['granted among others', ['ads', DEVICE], true],
    ['granted twice', [DEVICE, DEVICE], true],
    ['nothing granted', [], false],
    ['something else granted', ['ads'], false],
    ['almost granted', ['Device-Identification', 'device-identification ', 'device_identification'], false],
  ])('%s', (_what, purposes, allowed) => {
    expect(gate({ receipt: makeReceipt({ purposes }) }).allowed).toBe(allowed);
  });

  it('tells each purpose once', () => {
    expect(gate({ receipt: makeReceipt({ purposes: [DEVICE, 'ads', DEVICE] }) }).state.purposes).toEqual([
      DEVICE,
      'ads',
    ]);
  });

  it('carries version, time and basis over', () => {
    const { state } = gate({ receipt: makeReceipt({ version: 7, issuedAt: 42 }), basis: 'proven' });
    expect(state).toMatchObject({ version: 7, issuedAt: 42, basis: 'proven' });
    expect(consentStateSchema.parse(state)).toEqual(state);
  });

  it('leaves proof and principal out of what is answered and kept', () => {
    const receipt = makeReceipt({ principalId: 'u-1', proof: { seq: 1, hash: 'a'.repeat(64) } });
    expect(Object.keys(gate({ receipt }).state).sort()).toEqual(
      ['basis', 'gpc', 'gpcSource', 'issuedAt', 'purposes', 'version'].sort(),
    );
  });
});

describe('what is said of a bundle that did not open', () => {
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
