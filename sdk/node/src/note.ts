import { createHash, createPublicKey, verify } from 'node:crypto';
import { decodeBase64 } from './base64.ts';

/** C2SP signed-note with Ed25519 keys: https://c2sp.org/signed-note, and cosignatures: https://c2sp.org/tlog-cosignature */

const ED25519 = 0x01;
/** Over a time and the note, by a witness. */
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
  /** With its last newline: what is signed. */
  readonly text: string;
  readonly signatures: readonly { readonly name: string; readonly bytes: Buffer }[];
}

/** `name+hex(id)+base64(type || public key)`, or null. Base64 has pluses of its own, so the first two part it. */
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

/** Null when it is no note. The text may hold empty lines: the last one parts it from the signatures. */
export function parseNote(note: string): SignedNote | null {
  const gap = note.lastIndexOf('\n\n');
  if (gap === -1 || !note.endsWith('\n') || /\p{Cc}/u.test(note.replaceAll('\n', ''))) return null;
  const lines = note.slice(gap + 2, -1).split('\n');
  if (lines.length > MAX_SIGNATURES) return null;
  const signatures = lines.map(parseSignature).filter((signature) => signature !== null);
  return signatures.length === lines.length ? { text: note.slice(0, gap + 1), signatures } : null;
}

/** What the lines say that claim to be of this key, without its id. */
const linesOf = ({ signatures }: SignedNote, { name, id }: VerifierKey): Buffer[] =>
  signatures
    .filter((one) => one.name === name && one.bytes.subarray(0, KEY_ID_BYTES).equals(id))
    .map(({ bytes }) => bytes.subarray(KEY_ID_BYTES));

function verifies(message: string, { publicKey }: VerifierKey, signature: Buffer): boolean {
  const der = Buffer.concat([SPKI_PREFIX, publicKey]);
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  return verify(null, Buffer.from(message), key, signature);
}

/** At least one signature is of this key, and each that claims to be is right. */
export function isSignedBy(note: SignedNote, key: VerifierKey): boolean {
  const own = linesOf(note, key);
  return own.length > 0 && own.every((signature) => verifies(note.text, key, signature));
}

const TIME_BYTES = 8;

/** When this witness cosigned the note last, in epoch seconds; null unless it did, and each line of it is right. */
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
