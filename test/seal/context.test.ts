import { createECDH, hkdfSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ASYMMETRIC_ALG, SEAL_VERSION, SYMMETRIC_ALG } from '../../src/seal/constants.ts';
import { additionalData, keyInfo, lengthPrefixed, type SealContext } from '../../src/seal/context.ts';
import { deriveKey } from '../../src/seal/derive.ts';
import { fc } from '../support/property.ts';
import { readSealVector } from '../support/vectors.ts';

const vector = readSealVector();
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const context: SealContext = {
  alg: ASYMMETRIC_ALG,
  kid: vector.kid,
  epk: Buffer.from(vector.epk_hex, 'hex'),
  recipient: Buffer.from(vector.recipient_public_hex, 'hex'),
};

describe('gpd-seal/1, every intermediate value of the known answer', () => {
  it('the shared secret, from either side', () => {
    const ecdh = createECDH('prime256v1');
    ecdh.setPrivateKey(Buffer.from(vector.recipient_private_d_hex, 'hex'));
    expect(hex(ecdh.computeSecret(context.epk))).toBe(vector.shared_secret_x_hex);
    ecdh.setPrivateKey(Buffer.from(vector.ephemeral_private_d_hex, 'hex'));
    expect(hex(ecdh.getPublicKey())).toBe(vector.epk_hex);
    expect(hex(ecdh.computeSecret(context.recipient))).toBe(vector.shared_secret_x_hex);
  });

  it('the info of HKDF, the key and the additional data', () => {
    const bytes = (text: string): Buffer => Buffer.from(text, 'hex');
    expect(hex(keyInfo(context))).toBe(vector.info_hex);
    expect(hex(deriveKey(bytes(vector.shared_secret_x_hex), bytes(vector.info_hex)))).toBe(vector.key_hex);
    expect(hex(additionalData(context, bytes(vector.iv_hex)))).toBe(vector.aad_hex);
  });
});

describe('lengthPrefixed', () => {
  it('writes u16 lengths, big-endian', () => {
    expect(hex(lengthPrefixed(['', 'ab', Buffer.alloc(0x0102, 7)]))).toBe(
      `0000${'0002'}6162${'0102'}${'07'.repeat(258)}`,
    );
  });

  it('gives different bytes for different parts, however they are cut', () => {
    const parts = fc.array(fc.string({ unit: fc.constantFrom('a', '\u0000', '\u0001'), maxLength: 3 }), {
      maxLength: 4,
    });
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        const isSame = JSON.stringify(a) === JSON.stringify(b);
        expect(hex(lengthPrefixed(a)) === hex(lengthPrefixed(b))).toBe(isSame);
      }),
    );
  });
});

describe('the context', () => {
  it('binds every part of it, into the key and into the additional data', () => {
    const iv = Buffer.alloc(12);
    const changes: Partial<SealContext>[] = [
      { alg: SYMMETRIC_ALG },
      { kid: 'other' },
      { epk: Buffer.alloc(65, 4) },
      { recipient: Buffer.alloc(65, 4) },
      { epk: new Uint8Array(0) },
    ];
    const infos = changes.map((change) => hex(keyInfo({ ...context, ...change })));
    const data = changes.map((change) => hex(additionalData({ ...context, ...change }, iv)));
    const otherIv = hex(additionalData(context, Buffer.alloc(12, 1)));
    const all = [hex(keyInfo(context)), hex(additionalData(context, iv)), otherIv, ...infos, ...data];
    expect(new Set(all).size).toBe(all.length);
  });
});

describe('deriveKey', () => {
  it('is HKDF-SHA-256 with the version as salt and 32 bytes of output', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.uint8Array({ maxLength: 400 }), (secret, info) => {
        const expected = Buffer.from(hkdfSync('sha256', secret, SEAL_VERSION, info, 32));
        expect(deriveKey(secret, info)).toEqual(expected);
      }),
    );
  });
});
