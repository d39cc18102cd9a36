import { createECDH } from 'node:crypto';
import { ASYMMETRIC_ALG } from '../../../src/seal/constants.ts';
import { createOpener, type Opener } from '../../../src/seal/open.ts';

export interface SealKey {
  /** base64, as GET /_fp/pubkey gives it. */
  readonly publicKey: string;
  readonly open: Opener;
}

/** A tenant's seal key of this run, and what opens bundles sealed to it. */
export function createSealKey(): SealKey {
  const ecdh = createECDH('prime256v1');
  const publicKey = ecdh.generateKeys('base64');
  // A scalar with leading zero bytes comes out shorter than 32.
  const scalar = Buffer.alloc(32);
  const scalarBytes = ecdh.getPrivateKey();
  scalarBytes.copy(scalar, 32 - scalarBytes.length);
  return { publicKey, open: createOpener(scalar) };
}

export function pubKeyBody(kid: string, key: SealKey): { kid: string; alg: string; publicKey: string } {
  return { kid, alg: ASYMMETRIC_ALG, publicKey: key.publicKey };
}
