import { randomBytes, toBase64Url } from './bytes.ts';
import { toJson } from './json.ts';
import type { CollectedSignals, ConsentReceipt } from './types.ts';

const NONCE_BYTES = 16;

/** The receipt's own fields and no others: a page may hand in a richer object. */
function wireReceipt(receipt: ConsentReceipt): ConsentReceipt {
  const { purposes, gpc, version, issuedAt, proof, principalId } = receipt;
  // JSON leaves out what is undefined; null would be refused by the server.
  return {
    purposes,
    gpc,
    version,
    issuedAt,
    proof: proof ? { seq: proof.seq, hash: proof.hash } : undefined,
    principalId: principalId ?? undefined,
  };
}

/**
 * The plaintext of a bundle (contract section 2), with a new nonce and time on every call.
 * @param aheadMs how far this device's clock is ahead of the server's
 * @param after the earlier request of this session that the bundle supersedes
 */
export function makePlaintext(
  consent: ConsentReceipt,
  signals: CollectedSignals,
  aheadMs = 0,
  after?: string,
): Uint8Array<ArrayBuffer> {
  const body = {
    v: 1,
    nonce: toBase64Url(randomBytes(NONCE_BYTES)),
    clientTs: Date.now() - aheadMs,
    consent: wireReceipt(consent),
    signals,
    after,
  };
  return new TextEncoder().encode(toJson(body));
}
