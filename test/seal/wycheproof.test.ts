import { createECDH, hkdfSync } from 'node:crypto';
import { expect, it } from 'vitest';
import { SEAL_VERSION } from '../../src/seal/constants.ts';
import { deriveKey } from '../../src/seal/derive.ts';
import { createOpener } from '../../src/seal/open.ts';
import { describeWithTool } from '../support/tools.ts';
import { missingVectors, readWycheproof } from '../support/vectors.ts';
import { forge } from './support.ts';

const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex');
const missing = (name: string): string | null => missingVectors(`wycheproof/${name}`);

interface EcdhTest {
  readonly tcId: number;
  readonly comment: string;
  readonly flags: readonly string[];
  readonly public: string;
  readonly private: string;
  readonly shared: string;
  readonly result: 'valid' | 'invalid' | 'acceptable';
}

/** Private keys are written with a sign byte, or without leading zeros. */
function scalarOf(hex: string): Buffer {
  return bytes(hex.padStart(64, '0').slice(-64));
}

const ECDH_FILE = 'ecdh_secp256r1_ecpoint_test.json';

describeWithTool('an opener and the points of Wycheproof', missing(ECDH_FILE), () => {
  const tests = missing(ECDH_FILE) === null ? readWycheproof<EcdhTest>(ECDH_FILE) : [];

  /** @returns the opened text; the bundle opens only if the point is accepted and gives `shared` */
  const opened = (test: EcdhTest): string | null => {
    const scalar = scalarOf(test.private);
    const ecdh = createECDH('prime256v1');
    ecdh.setPrivateKey(scalar);
    const recipient = ecdh.getPublicKey();
    const bundle = forge({ recipient, epk: bytes(test.public), shared: bytes(test.shared) });
    return createOpener(scalar)(bundle)?.toString() ?? null;
  };
  const named = (test: EcdhTest): string => `tcId ${test.tcId} ${test.comment} ${test.flags.join(',')}`;

  it('opens with every valid uncompressed point', () => {
    const valid = tests.filter(({ result }) => result === 'valid');
    expect(valid.length).toBeGreaterThan(200);
    for (const test of valid) expect(opened(test), named(test)).toBe('forged');
  });

  it('opens with none that is compressed, off the curve, of another curve or badly encoded', () => {
    const invalidTests = tests.filter(({ result }) => result !== 'valid');
    expect(invalidTests.length).toBeGreaterThan(10);
    for (const test of invalidTests) expect(opened(test), named(test)).toBeNull();
  });
});

interface HkdfTest {
  readonly tcId: number;
  readonly ikm: string;
  readonly info: string;
}

const HKDF_FILE = 'hkdf_sha256_test.json';

describeWithTool('deriveKey and the HKDF of Wycheproof', missing(HKDF_FILE), () => {
  const tests = missing(HKDF_FILE) === null ? readWycheproof<HkdfTest>(HKDF_FILE) : [];

  it('gives the same key for every input, under the salt of gpd-seal/1', () => {
    expect(tests.length).toBeGreaterThan(50);
    for (const { tcId, ikm, info } of tests) {
      const expected = Buffer.from(hkdfSync('sha256', bytes(ikm), SEAL_VERSION, bytes(info), 32));
      expect(deriveKey(bytes(ikm), bytes(info)), `tcId ${tcId}`).toEqual(expected);
    }
  });
});
