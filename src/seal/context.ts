import { SEAL_VERSION } from './constants.ts';

/**
 * The bytes that bind a sealed bundle to its version, algorithm, tenant and keys (contract section 2). The
 * browser uses it too.
 */

const encoder = new TextEncoder();

/** lp(b) = u16(len b) || b for each part in turn. */
export function lengthPrefixed(parts: readonly (string | Uint8Array)[]): Uint8Array<ArrayBuffer> {
  const bytes = parts.map((part) => (typeof part === 'string' ? encoder.encode(part) : part));
  const out = new Uint8Array(bytes.reduce((sum, part) => sum + 2 + part.length, 0));
  let at = 0;
  for (const part of bytes) {
    out[at] = part.length >>> 8;
    out[at + 1] = part.length & 0xff;
    out.set(part, at + 2);
    at += 2 + part.length;
  }
  return out;
}

export interface SealContext {
  readonly alg: string;
  readonly kid: string;
  /** Empty for the symmetric form. */
  readonly epk: Uint8Array;
  readonly recipient: Uint8Array;
}

const VERSION = encoder.encode(SEAL_VERSION);
const KEY = encoder.encode('key');
const AAD = encoder.encode('aad');

function contextParts(context: SealContext): (string | Uint8Array)[] {
  return [VERSION, context.alg, context.kid, context.epk, context.recipient];
}

/** HKDF info: lp("key") || ctx. */
export function keyInfo(context: SealContext): Uint8Array<ArrayBuffer> {
  return lengthPrefixed([KEY, ...contextParts(context)]);
}

/** AES-GCM additional data: lp("aad") || ctx || lp(iv). */
export function additionalData(context: SealContext, iv: Uint8Array): Uint8Array<ArrayBuffer> {
  return lengthPrefixed([AAD, ...contextParts(context), iv]);
}
