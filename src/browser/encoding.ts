/**
 * Bytes and JSON as text. A page may have changed the built-in classes, and the server has to get the same.
 */

/** Canonical padded base64 (RFC 4648 section 4). */
export function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** Unpadded base64url (RFC 4648 section 5). */
export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
}

/** @throws {Error} when the text is not base64 */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

export function randomBytes(size: number): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(size));
}

/** The first 16 bytes of SHA-256, in hex: short on the wire and far from a collision. */
export async function shortHash(data: BufferSource): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', data)).subarray(0, 16);
  let hex = '';
  // An old library's Array.from maps nothing.
  for (const byte of hash) hex += byte.toString(16).padStart(2, '0');
  return hex;
}

/** A copy that inherits nothing: old libraries put a `toJSON` on Array.prototype, which JSON would call. */
function bare(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const copy = Object.setPrototypeOf(Array.isArray(value) ? [] : {}, null) as Record<string, unknown>;
  for (const [name, part] of Object.entries(value)) copy[name] = bare(part);
  return copy;
}

/** JSON of plain data, whatever the page has done to the built-in classes. */
export const toJson = (value: unknown): string => JSON.stringify(bare(value));
