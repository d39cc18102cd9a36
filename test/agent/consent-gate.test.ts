import { describe, expect, it } from 'vitest';
import { isRefused, PURPOSE, passConsentGate } from '../../src/agent/consent-gate.ts';
import { fc } from '../support/property.ts';

const createReceipt = (fields: object = {}) => ({
  purposes: [PURPOSE],
  gpc: false,
  version: 1,
  issuedAt: 1_763_629_990_000,
  ...fields,
});

describe('passConsentGate', () => {
  it('lets a receipt with the purpose through as it is', () => {
    const receipt = createReceipt({ purposes: ['analytics', PURPOSE] });
    expect(passConsentGate(receipt, false)).toBe(receipt);
  });

  it('refuses under GPC, whoever says it, before it looks at anything else', () => {
    expect(passConsentGate(createReceipt(), true)).toMatchObject({ sent: false, reason: 'gpc' });
    expect(passConsentGate(createReceipt({ gpc: true }), false)).toMatchObject({
      sent: false,
      reason: 'gpc',
    });
    expect(passConsentGate(null, true)).toMatchObject({ sent: false, reason: 'gpc' });
  });

  it('lets a yes over the signal through, which brings what the server asks the ledger for', () => {
    const proof = { seq: 7, hash: 'a'.repeat(64) };
    const over = createReceipt({ gpc: true, overGpc: true, proof, principalId: 'b_1' });
    expect(passConsentGate(over, true)).toBe(over);
    for (const change of [
      { proof: undefined },
      { principalId: undefined },
      { overGpc: 'yes' },
      { version: 1.5 },
    ])
      expect(passConsentGate({ ...over, ...change }, true)).toMatchObject({ reason: 'gpc' });
    expect(passConsentGate({ ...over, purposes: [] }, true)).toMatchObject({ reason: 'consent-missing' });
  });

  it.each([
    ['null', null],
    ['a text', 'granted'],
    ['an empty object', {}],
    ['no purposes', createReceipt({ purposes: [] })],
    ['another purpose', createReceipt({ purposes: ['device-identification-2', 'DEVICE-IDENTIFICATION'] })],
    ['purposes as a text', createReceipt({ purposes: PURPOSE })],
    ['purposes of another type', createReceipt({ purposes: [PURPOSE, 1] })],
    ['gpc as a number', createReceipt({ gpc: 0 })],
    ['no gpc', createReceipt({ gpc: undefined })],
    ['a version that is no integer', createReceipt({ version: 1.5 })],
    ['a time before 1970', createReceipt({ issuedAt: -1 })],
    ['a time that is a text', createReceipt({ issuedAt: '2025' })],
  ])('refuses %s', (_what, receipt) => {
    expect(passConsentGate(receipt, false)).toMatchObject({ sent: false, reason: 'consent-missing' });
  });

  it('passes nothing that lacks the purpose or has GPC, whatever it looks like', () => {
    fc.assert(
      fc.property(fc.anything(), fc.boolean(), (receipt, gpc) => {
        const outcome = passConsentGate(receipt, gpc);
        if (isRefused(outcome)) return;
        expect(gpc).toBe(false);
        expect(outcome.gpc).toBe(false);
        expect(outcome.purposes).toContain(PURPOSE);
      }),
    );
  });
});
