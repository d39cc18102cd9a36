import { createHash, createPublicKey, verify } from 'node:crypto';
import { decodeBase64 } from './base64.ts';

/** C2SP signed-note with Ed25519 keys: https://c2sp.org/signed-note, and cosignatures: https://c2sp.org/tlog-cosignature */

const ED25519 = 0x01;
/** The signature of a witness over a time and the note. */
const COSIGNATURE = 0x04;
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
  /** The signed text, including its last newline. */
  readonly text: string;
  readonly signatures: readonly { readonly name: string; readonly bytes: Buffer }[];
}

/** `name+hex(id)+base64(type || public key)`, or null. Base64 can contain `+` too, so only the first two separate the parts. */
function parseKey(text: string, type: number): VerifierKey | null {
  const [, name = '', digits, base64 = ''] = /^([^+]*)\+([0-9a-f]{8})\+(.*)$/s.exec(text.trim()) ?? [];
  const typed = decodeBase64(base64);
  if (!NAME.test(name) || typed?.length !== 33 || typed[0] !== type) return null;
  const id = createHash('sha256').update(`${name}\n`).update(typed).digest().subarray(0, KEY_ID_BYTES);
  return id.toString('hex') === digits ? { name, id, publicKey: typed.subarray(1) } : null;
}

export const parseVkey = (text: string): VerifierKey | null => parseKey(text, ED25519);
export const parseWitnessKey = (text: string): VerifierKey | null => parseKey(text, COSIGNATURE);

function parseSignature(line: string): SignedNote['signatures'][number] | null {
  const [, name = '', base64 = ''] = /^— (\S+) (\S+)$/.exec(line) ?? [];
  const bytes = decodeBase64(base64);
  return bytes && bytes.length > KEY_ID_BYTES && NAME.test(name) ? { name, bytes } : null;
}

/** Null for an invalid note. The text may have empty lines: the last one separates it from the signatures. */
export function parseNote(note: string): SignedNote | null {
  const gap = note.lastIndexOf('\n\n');
  if (gap === -1 || !note.endsWith('\n') || /\p{Cc}/u.test(note.replaceAll('\n', ''))) return null;
  const lines = note.slice(gap + 2, -1).split('\n');
  if (lines.length > MAX_SIGNATURES) return null;
  const signatures = lines.map(parseSignature).filter((signature) => signature !== null);
  return signatures.length === lines.length ? { text: note.slice(0, gap + 1), signatures } : null;
}

/** The signatures of all lines with the name and id of this key. */
const linesOf = ({ signatures }: SignedNote, { name, id }: VerifierKey): Buffer[] =>
  signatures
    .filter((one) => one.name === name && one.bytes.subarray(0, KEY_ID_BYTES).equals(id))
    .map(({ bytes }) => bytes.subarray(KEY_ID_BYTES));

function verifies(message: string, { publicKey }: VerifierKey, signature: Buffer): boolean {
  const der = Buffer.concat([SPKI_PREFIX, publicKey]);
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  return verify(null, Buffer.from(message), key, signature);
}

/** True if the key has signed the note and all signatures under its name and id are valid. */
export function isSignedBy(note: SignedNote, key: VerifierKey): boolean {
  const lines = linesOf(note, key);
  return lines.length > 0 && lines.every((signature) => verifies(note.text, key, signature));
}

const TIME_BYTES = 8;

/** Epoch seconds of this witness's latest cosignature; null if there is none or one is invalid. */
export function cosignedAt(note: SignedNote, key: VerifierKey): number | null {
  let latest: number | null = null;
  for (const line of linesOf(note, key)) {
    const time = line.length === TIME_BYTES + 64 ? Number(line.readBigUInt64BE()) : Number.NaN;
    const message = `cosignature/v1\ntime ${time}\n${note.text}`;
    if (!Number.isSafeInteger(time) || !verifies(message, key, line.subarray(TIME_BYTES))) return null;
    latest = Math.max(latest ?? 0, time);
  }
  return latest;
}
