import { describe, expect, it } from 'vitest';
import { makePlaintext } from '../../src/agent/seal.ts';
import { plaintextSchema } from '../../src/schema/bundle.ts';

const CONSENT = { purposes: ['device-identification'], gpc: false, version: 3, issuedAt: 1_763_629_990_000 };

const read = (bytes: Uint8Array): Record<string, unknown> => JSON.parse(Buffer.from(bytes).toString('utf8'));

describe('makePlaintext', () => {
  it('makes what the server reads', () => {
    const before = Date.now();
    const body = plaintextSchema.parse(read(makePlaintext(CONSENT, { collector: '1', page: null })));
    expect(body).toMatchObject({ v: 1, consent: CONSENT, signals: { collector: '1', page: null } });
    expect(body.clientTs).toBeGreaterThanOrEqual(before);
    expect(Buffer.from(body.nonce, 'base64url')).toHaveLength(16);
  });

  it('has a new nonce every time', () => {
    const nonces = Array.from({ length: 50 }, () => read(makePlaintext(CONSENT, {}))['nonce']);
    expect(new Set(nonces).size).toBe(50);
  });

  it('carries proof and principal when there are any, and nothing else of the receipt', () => {
    const rich = {
      ...CONSENT,
      proof: { seq: 41, hash: 'ab'.repeat(32), secret: 'x' },
      principalId: 'u-1',
      principalSecret: 'never',
    };
    expect(read(makePlaintext(rich, {}))['consent']).toEqual({
      ...CONSENT,
      proof: { seq: 41, hash: 'ab'.repeat(32) },
      principalId: 'u-1',
    });
    expect(Object.keys(read(makePlaintext(CONSENT, {}))['consent'] as object)).toEqual(Object.keys(CONSENT));
  });
});
