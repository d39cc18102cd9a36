import { createCipheriv, createECDH } from 'node:crypto';
import type { SealedBundle } from '../../src/schema/bundle.ts';
import { ASYMMETRIC_ALG } from '../../src/seal/constants.ts';
import { additionalData, keyInfo } from '../../src/seal/context.ts';
import { deriveKey } from '../../src/seal/derive.ts';

/** A P-256 key pair from 32 bytes. */
export function createPair(scalar: Buffer): { scalar: Buffer; publicKey: Buffer } {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(scalar);
  return { scalar, publicKey: ecdh.getPublicKey() };
}

export interface ForgeOptions {
  readonly kid?: string;
  readonly recipient: Uint8Array;
  /** The bytes that stand for the ephemeral key, in whatever encoding. */
  readonly epk: Uint8Array;
  /** ECDH with that point gives this. */
  readonly shared: Uint8Array;
  readonly plaintext?: string;
  readonly tagBytes?: number;
}

/** A bundle that opens if the server accepts `epk` as a point and a tag of `tagBytes` as a tag. */
export function forge(options: ForgeOptions): SealedBundle {
  const { kid = 'acme', recipient, epk, shared, plaintext = 'forged', tagBytes = 16 } = options;
  const iv = Buffer.alloc(12, 9);
  const context = { alg: ASYMMETRIC_ALG, kid, epk, recipient };
  const cipher = createCipheriv('aes-256-gcm', deriveKey(shared, keyInfo(context)), iv, {
    authTagLength: 16,
  });
  cipher.setAAD(additionalData(context, iv));
  const sealed = [cipher.update(plaintext), cipher.final(), cipher.getAuthTag().subarray(0, tagBytes)];
  const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
  return { kid, epk: base64(epk), iv: base64(iv), ct: base64(Buffer.concat(sealed)) };
}
