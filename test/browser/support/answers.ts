import { createECDH } from 'node:crypto';
import { INGEST_STATUS, type IngestReason, type IngestResponse } from '../../../src/schema/responses.ts';
import { ASYMMETRIC_ALG } from '../../../src/seal/constants.ts';
import { createOpener, type Opener } from '../../../src/seal/open.ts';
import type { Answer } from './site.ts';

/** @returns an answer of gpd's core with nothing in it but the reason */
export function createIngestAnswer(reason: IngestReason): Answer & { readonly body: IngestResponse } {
  return {
    status: INGEST_STATUS[reason],
    body: {
      class: 'unknown',
      visitorId: null,
      deviceId: null,
      declaredAgentId: null,
      confidence: 0,
      suspectScore: null,
      smartSignals: { bot: false, incognito: false, tampered: false, inconsistency: 0 },
      needsAttestation: false,
      consentState: {
        purposes: [],
        gpc: false,
        gpcSource: 'none',
        version: 0,
        issuedAt: 0,
        basis: 'asserted',
      },
      reason,
      requestId: 'req_01HZZZZZZZZZZZZZZZZZZZZZZZ',
    },
  };
}

/** A receipt that passes the gate. */
export const GRANTED = {
  purposes: ['device-identification'],
  gpc: false,
  version: 3,
  issuedAt: 1_763_629_990_000,
};

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
