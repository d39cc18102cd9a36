import { createDecipheriv, createECDH, hkdfSync } from 'node:crypto';
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

interface AeadTest {
  readonly tcId: number;
  readonly comment: string;
  readonly ivSize: number;
  readonly keySize: number;
  readonly tagSize: number;
  readonly key: string;
  readonly iv: string;
  readonly aad: string;
  readonly msg: string;
  readonly ct: string;
  readonly tag: string;
  readonly result: 'valid' | 'invalid';
}

const GCM_FILE = 'aes_gcm_test.json';

/** AES-256-GCM called as src/seal/open.ts calls it, whose keys are derived and cannot be given. */
function decrypt(test: AeadTest): string | null {
  const decipher = createDecipheriv('aes-256-gcm', bytes(test.key), bytes(test.iv), { authTagLength: 16 });
  decipher.setAAD(bytes(test.aad));
  decipher.setAuthTag(bytes(test.tag));
  const plaintext = decipher.update(bytes(test.ct));
  try {
    return Buffer.concat([plaintext, decipher.final()]).toString('hex');
  } catch {
    return null;
  }
}

describeWithTool('AES-256-GCM of this runtime and Wycheproof', missing(GCM_FILE), () => {
  it('decrypts what is valid and refuses what is not', () => {
    const all = readWycheproof<AeadTest>(GCM_FILE);
    const ours = all.filter((test) => test.keySize === 256 && test.ivSize === 96 && test.tagSize === 128);
    expect(ours.filter(({ result }) => result === 'valid').length).toBeGreaterThan(20);
    expect(ours.filter(({ result }) => result === 'invalid').length).toBeGreaterThan(20);
    for (const test of ours)
      expect(decrypt(test), `tcId ${test.tcId} ${test.comment}`).toBe(
        test.result === 'valid' ? test.msg : null,
      );
  });
});

interface HkdfTest {
  readonly tcId: number;
  readonly ikm: string;
  readonly salt: string;
  readonly info: string;
  readonly size: number;
  readonly okm: string;
  readonly result: 'valid' | 'invalid';
}

const HKDF_FILE = 'hkdf_sha256_test.json';

describeWithTool('deriveKey and the HKDF of Wycheproof', missing(HKDF_FILE), () => {
  const tests = missing(HKDF_FILE) === null ? readWycheproof<HkdfTest>(HKDF_FILE) : [];

  it('is measured by an HKDF that passes', () => {
    for (const { tcId, ikm, salt, info, size, okm } of tests.filter(({ result }) => result === 'valid'))
      expect(
        Buffer.from(hkdfSync('sha256', bytes(ikm), bytes(salt), bytes(info), size)).toString('hex'),
        `${tcId}`,
      ).toBe(okm);
  });

  it('gives the same key for every input, under the salt of gpd-seal/1', () => {
    expect(tests.length).toBeGreaterThan(50);
    for (const { tcId, ikm, info } of tests) {
      const expected = Buffer.from(hkdfSync('sha256', bytes(ikm), SEAL_VERSION, bytes(info), 32));
      expect(deriveKey(bytes(ikm), bytes(info)), `tcId ${tcId}`).toEqual(expected);
    }
  });
});
