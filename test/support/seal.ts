import { randomBytes } from 'node:crypto';
import type { SealedBundle } from '../../src/schema/bundle.ts';
import { sealSymmetric, sealTo } from '../../src/seal/seal.ts';
import { desktopChrome } from './samples.ts';
import type { SealTarget } from './server.ts';

/** Builds plaintexts and bundles, which are valid unless the caller changes them. */

export interface ReceiptParts {
  readonly purposes?: readonly string[];
  readonly gpc?: boolean;
  readonly [more: string]: unknown;
}

export interface PlaintextParts {
  readonly nonce?: string;
  readonly clientTs?: number;
  readonly consent?: ReceiptParts;
  readonly signals?: Readonly<Record<string, unknown>>;
  readonly [more: string]: unknown;
}

export function createNonce(bytes = 16): string {
  return randomBytes(bytes).toString('base64url');
}

/** Builds a complete plaintext of a consenting person on a new device. */
export function makePlaintext(parts: PlaintextParts = {}): Record<string, unknown> {
  const { consent, ...rest } = parts;
  const now = Date.now();
  return {
    v: 1,
    nonce: createNonce(),
    clientTs: now,
    consent: {
      purposes: ['device-identification'],
      gpc: false,
      version: 3,
      issuedAt: now - 10_000,
      ...consent,
    },
    signals: desktopChrome(),
    ...rest,
  };
}

function bytesOf(plaintext: unknown): Uint8Array {
  if (plaintext instanceof Uint8Array) return plaintext;
  return Buffer.from(typeof plaintext === 'string' ? plaintext : JSON.stringify(plaintext));
}

/** @param plaintext texts and bytes are sealed unchanged, any other value as JSON */
export function seal(target: SealTarget, plaintext: unknown): SealedBundle & { epk: string } {
  const bundle = sealTo(target.kid, target.publicKey, bytesOf(plaintext), randomBytes);
  return { ...bundle, epk: bundle.epk ?? '' };
}

export function sealUnder(kid: string, sharedKey: Uint8Array, plaintext: unknown): SealedBundle {
  return sealSymmetric(kid, sharedKey, bytesOf(plaintext), randomBytes);
}

export function createBundle(target: SealTarget, parts: PlaintextParts = {}): SealedBundle & { epk: string } {
  return seal(target, makePlaintext(parts));
}

/** Decodes base64, flips one byte and encodes it again. */
export function flipByte(text: string, at: number): string {
  const bytes = Buffer.from(text, 'base64');
  const index = at < 0 ? bytes.length + at : at;
  bytes[index] = (bytes[index] ?? 0) ^ 1;
  return bytes.toString('base64');
}
