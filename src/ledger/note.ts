import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { decodeBase64 } from '../lib/base64.ts';
import { formatVkey, isKeyName, KEY_ID_BYTES, makeVerifierKey, type VerifierKey } from './vkey.ts';

/** C2SP signed-note: a text, an empty line, then lines of `— name base64(key id || signature)`. */

const SEED_BYTES = 32;
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
/** Sixteen must be accepted; a bound keeps a note from being a way to burn CPU. */
const MAX_SIGNATURES = 64;

export type NoteSigner = Readonly<ReturnType<typeof makeNoteSigner>>;

export interface NoteSignature {
  readonly name: string;
  readonly id: Buffer;
  readonly signature: Buffer;
}

export interface SignedNote {
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** @param seed the 32 bytes of an Ed25519 private key (RFC 8032) */
export function openSeed(seed: Uint8Array) {
  if (seed.length !== SEED_BYTES) throw new TypeError('an Ed25519 seed has 32 bytes');
  const der = Buffer.concat([PKCS8_PREFIX, seed]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  der.fill(0);
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  return {
    publicKey: spki.subarray(SPKI_PREFIX.length),
    sign: (text: string) => sign(null, Buffer.from(text), privateKey),
  };
}

export const formatSignature = ({ name, id, signature }: NoteSignature): string =>
  `— ${name} ${Buffer.concat([id, signature]).toString('base64')}\n`;

/** @param seed as of `openSeed` */
export function makeNoteSigner(name: string, seed: Uint8Array) {
  const pair = openSeed(seed);
  const key = makeVerifierKey(name, pair.publicKey);
  return {
    name,
    /** The verifier key as text, for `/vkey` and for the genesis entry. */
    vkey: formatVkey(key),
    /** The signature line for a text, with its newline. */
    sign: (text: string) => formatSignature({ name, id: key.id, signature: pair.sign(text) }),
  };
}

const isNoteText = (text: string): boolean =>
  text.isWellFormed() && /^[^\p{Cc}]*$/u.test(text.replaceAll('\n', ''));

/** @throws {TypeError} for a text that a note cannot hold: without a final newline, or with control characters */
export function signNote(text: string, signer: NoteSigner): string {
  if (!text.endsWith('\n') || !isNoteText(text)) throw new TypeError('not the text of a note');
  return `${text}\n${signer.sign(text)}`;
}

function parseSignature(line: string): NoteSignature | null {
  const [, name, base64] = /^— (\S+) (\S+)$/.exec(line) ?? [];
  if (name === undefined || base64 === undefined || !isKeyName(name)) return null;
  const bytes = decodeBase64(base64);
  if (bytes === null || bytes.length <= KEY_ID_BYTES) return null;
  return { name, id: bytes.subarray(0, KEY_ID_BYTES), signature: bytes.subarray(KEY_ID_BYTES) };
}

/** The text may hold empty lines, so the last one parts it from the signatures. Null when it is not a note. */
export function parseNote(note: string): SignedNote | null {
  const gap = note.lastIndexOf('\n\n');
  if (gap === -1 || !note.endsWith('\n') || !isNoteText(note)) return null;
  const lines = note.slice(gap + 2, -1).split('\n');
  const signatures = lines.slice(0, MAX_SIGNATURES + 1).map(parseSignature);
  if (signatures.length > MAX_SIGNATURES || signatures.includes(null)) return null;
  return { text: note.slice(0, gap + 1), signatures: signatures.filter((signature) => signature !== null) };
}

export const linesOf = ({ signatures }: SignedNote, key: VerifierKey): NoteSignature[] =>
  signatures.filter(({ name, id }) => name === key.name && id.equals(key.id));

export function isSigned(text: string, signature: Uint8Array, key: VerifierKey): boolean {
  const der = Buffer.concat([SPKI_PREFIX, key.publicKey]);
  const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' });
  return verify(null, Buffer.from(text), publicKey, signature);
}

/**
 * True when the note carries a signature of this key, and each that claims to be of this key is right. Those of other
 * keys (witnesses, earlier keys) are not looked at.
 */
export function verifyNote(note: SignedNote, key: VerifierKey): boolean {
  const own = linesOf(note, key);
  return own.length > 0 && own.every(({ signature }) => isSigned(note.text, signature, key));
}
