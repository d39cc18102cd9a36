import { createHmac, hash, timingSafeEqual } from 'node:crypto';

export function sha256(data: string | Uint8Array): Buffer {
  return hash('sha256', data, 'buffer');
}

/** The same as base64url, without a Buffer in between. */
export function sha256Text(data: string | Uint8Array): string {
  return hash('sha256', data, 'base64url');
}

export function hmacSha256(key: Uint8Array, data: string | Uint8Array): Buffer {
  return createHmac('sha256', key).update(data).digest();
}

/** The same as base64url, without a Buffer in between. */
export function hmacSha256Text(key: Uint8Array, data: string | Uint8Array): string {
  return createHmac('sha256', key).update(data).digest('base64url');
}

/** Constant-time for inputs of one length; the length itself is not a secret anywhere in gpd. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
