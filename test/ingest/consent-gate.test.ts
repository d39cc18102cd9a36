import { describe, expect, it } from 'vitest';
import { consentGate } from '../../src/ingest/consent-gate.ts';
import type { ConsentReceipt } from '../../src/schema/bundle.ts';
import type { Tenant } from '../../src/tenants/tenant.ts';
import { createReceipt } from '../support/make.ts';

const DEVICE = 'device-identification';

const gate = (receipt: ConsentReceipt, gpcPolicy: Tenant['gpcPolicy'] = () => 'opt-out') =>
  consentGate({ kid: 'acme', needsProof: false, gpcPolicy }, receipt, { inHeader: false, inSignals: false });

describe('consentGate', () => {
  it('hands on a claim that a person overruled GPC, where the policy is ask and the bundle brings a proof', () => {
    const claim = { principalId: 'b_1', proof: { seq: 1, hash: 'a'.repeat(64) } };
    const policies = { [DEVICE]: 'ask', ads: 'opt-out', fraud: 'ignore' } as const;
    const gpcPolicy: Tenant['gpcPolicy'] = (purpose) => policies[purpose as keyof typeof policies];
    const receipt = createReceipt({ purposes: [DEVICE, 'ads', 'fraud'], gpc: true, ...claim });
    expect(gate(receipt, gpcPolicy)).toMatchObject({
      isAllowed: true,
      overGpc: [DEVICE],
      // The response names no purpose before its consent is proven.
      asserted: { purposes: ['fraud'] },
    });
    for (const missing of ['principalId', 'proof'] as const) {
      const { [missing]: _, ...rest } = receipt;
      expect(gate(rest, gpcPolicy), missing).toMatchObject({ isAllowed: false, overGpc: [] });
    }
    const off = gate({ ...receipt, gpc: false }, gpcPolicy);
    expect(off).toMatchObject({ overGpc: [], asserted: { purposes: receipt.purposes } });
  });

  it('tells each purpose once', () => {
    const receipt = createReceipt({ purposes: [DEVICE, 'ads', DEVICE] });
    expect(gate(receipt).asserted.purposes).toEqual([DEVICE, 'ads']);
  });

  it('leaves proof and principal out of what is answered and kept', () => {
    const receipt = createReceipt({ principalId: 'u-1', proof: { seq: 1, hash: 'a'.repeat(64) } });
    expect(Object.keys(gate(receipt).asserted).sort()).toEqual(
      ['basis', 'gpc', 'gpcSource', 'issuedAt', 'purposes', 'version'].sort(),
    );
  });
});
