import { decodeBase64 } from '../lib/base64.ts';
import { sha256 } from '../lib/hash.ts';

/** C2SP signed-note: the names, ids and text form of Ed25519 keys. */

/** Signature type 0x01: Ed25519 over the text of the note. */
const ED25519 = 0x01;
/** Signature type 0x04: a cosignature of a witness, over a time and the text. */
export const COSIGNATURE = 0x04;
const PUBLIC_KEY_BYTES = 32;
export const KEY_ID_BYTES = 4;

export interface VerifierKey {
  readonly name: string;
  readonly type: number;
  /** 4 bytes. With the name it says which key signed; it is too short to prove anything. */
  readonly id: Buffer;
  /** 32 bytes (RFC 8032). */
  readonly publicKey: Buffer;
}

/** Neither spaces (of all Unicode) nor control characters nor a plus. */
export function isKeyName(name: string): boolean {
  return name.isWellFormed() && /^[^\s\p{Cc}+]+$/u.test(name);
}

/** @throws {TypeError} for a name that a note cannot carry, or a key that is not 32 bytes */
export function makeVerifierKey(name: string, publicKey: Uint8Array, type = ED25519): VerifierKey {
  if (!isKeyName(name)) throw new TypeError('a key name is not empty and has no spaces and no plus');
  if (publicKey.length !== PUBLIC_KEY_BYTES) throw new TypeError('an Ed25519 public key has 32 bytes');
  const key = Buffer.from(publicKey);
  const digest = sha256(Buffer.concat([Buffer.from(`${name}\n`), Buffer.from([type]), key]));
  return { name, type, id: digest.subarray(0, KEY_ID_BYTES), publicKey: key };
}

/** `name+hex(id)+base64(type || public key)`. */
export function formatVkey({ name, type, id, publicKey }: VerifierKey): string {
  const typed = Buffer.concat([Buffer.from([type]), publicKey]);
  return `${name}+${id.toString('hex')}+${typed.toString('base64')}`;
}

/** Null unless every part is right, the id included. Split at the first two pluses: base64 contains pluses too. */
export function parseVkey(text: string, type = ED25519): VerifierKey | null {
  const [, name, base64] = /^([^+]*)\+[^+]*\+(.*)$/s.exec(text) ?? [];
  if (name === undefined || base64 === undefined || !isKeyName(name)) return null;
  const typed = decodeBase64(base64);
  if (typed?.length !== 1 + PUBLIC_KEY_BYTES) return null;
  const key = makeVerifierKey(name, typed.subarray(1), type);
  return formatVkey(key) === text ? key : null;
}
