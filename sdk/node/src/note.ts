import { createHash, createPublicKey, verify } from 'node:crypto';
import { decodeBase64 } from './base64.ts';

/** C2SP signed-note with Ed25519 keys: https://c2sp.org/signed-note */

const ED25519 = 0x01;
const KEY_ID_BYTES = 4;
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const MAX_SIGNATURES = 64;
const NAME = /^[^\s\p{Cc}+]+$/u;

export interface VerifierKey {
  readonly name: string;
  readonly id: Buffer;
  /** 32 bytes. */
  readonly publicKey: Buffer;
}

export interface SignedNote {
  /** With its last newline: what is signed. */
  readonly text: string;
  readonly signatures: readonly { readonly name: string; readonly bytes: Buffer }[];
}

/** `name+hex(id)+base64(0x01 || public key)`, or null. Base64 has pluses of its own, so the first two part it. */
export function parseVkey(text: string): VerifierKey | null {
  const [, name = '', digits, base64 = ''] = /^([^+]*)\+([0-9a-f]{8})\+(.*)$/s.exec(text.trim()) ?? [];
  const typed = decodeBase64(base64);
  if (!NAME.test(name) || typed?.length !== 33 || typed[0] !== ED25519) return null;
  const id = createHash('sha256').update(`${name}\n`).update(typed).digest().subarray(0, KEY_ID_BYTES);
  return id.toString('hex') === digits ? { name, id, publicKey: typed.subarray(1) } : null;
}

function parseSignature(line: string): SignedNote['signatures'][number] | null {
  const [, name = '', base64 = ''] = /^— (\S+) (\S+)$/.exec(line) ?? [];
  const bytes = decodeBase64(base64);
  return bytes && bytes.length > KEY_ID_BYTES && NAME.test(name) ? { name, bytes } : null;
}

/** Null when it is no note. The text may hold empty lines: the last one parts it from the signatures. */
export function parseNote(note: string): SignedNote | null {
  const gap = note.lastIndexOf('\n\n');
  if (gap === -1 || !note.endsWith('\n') || /\p{Cc}/u.test(note.replaceAll('\n', ''))) return null;
  const lines = note.slice(gap + 2, -1).split('\n');
  if (lines.length > MAX_SIGNATURES) return null;
  const signatures = lines.map(parseSignature).filter((signature) => signature !== null);
  return signatures.length === lines.length ? { text: note.slice(0, gap + 1), signatures } : null;
}

/** At least one signature is of this key, and each that claims to be is right. */
export function isSignedBy({ text, signatures }: SignedNote, { name, id, publicKey }: VerifierKey): boolean {
  const own = signatures.filter((one) => one.name === name && one.bytes.subarray(0, KEY_ID_BYTES).equals(id));
  const der = Buffer.concat([SPKI_PREFIX, publicKey]);
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  const message = Buffer.from(text);
  return own.length > 0 && own.every(({ bytes }) => verify(null, message, key, bytes.subarray(KEY_ID_BYTES)));
}
