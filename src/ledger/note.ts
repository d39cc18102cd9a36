import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { decodeBase64, sha256 } from '../lib/crypto.ts';
import { HASH_BYTES } from './merkle.ts';

/** Signs and verifies C2SP signed notes: text, empty line, lines of `— name base64(key id || signature)`. */

const SEED_BYTES = 32;
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
/** The format requires sixteen; the bound keeps a note from costing much CPU. */
const MAX_SIGNATURES = 64;

export type NoteSigner = Readonly<ReturnType<typeof createNoteSigner>>;

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

/** @param seed see `openSeed` */
export function createNoteSigner(name: string, seed: Uint8Array) {
  const pair = openSeed(seed);
  const key = createVerifierKey(name, pair.publicKey);
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

/**
 * @throws {TypeError} for a text that a note cannot hold: without a final newline, or with control characters
 */
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

/** The text may contain empty lines, so the last one separates it from the signatures. Null: not a note. */
export function parseNote(note: string): SignedNote | null {
  const gap = note.lastIndexOf('\n\n');
  if (gap === -1 || !note.endsWith('\n') || !isNoteText(note)) return null;
  const lines = note.slice(gap + 2, -1).split('\n');
  const signatures = lines.slice(0, MAX_SIGNATURES + 1).map(parseSignature);
  if (signatures.length > MAX_SIGNATURES || signatures.includes(null)) return null;
  return { text: note.slice(0, gap + 1), signatures: signatures.filter((signature) => signature !== null) };
}

const linesOf = ({ signatures }: SignedNote, key: VerifierKey): NoteSignature[] =>
  signatures.filter(({ name, id }) => name === key.name && id.equals(key.id));

function isSigned(text: string, signature: Uint8Array, key: VerifierKey): boolean {
  const der = Buffer.concat([SPKI_PREFIX, key.publicKey]);
  const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' });
  return verify(null, Buffer.from(text), publicKey, signature);
}

/**
 * True when the note has a signature of this key, and each signature in its name is valid. Signatures of
 * other keys (witnesses, earlier keys) are ignored.
 */
export function verifyNote(note: SignedNote, key: VerifierKey): boolean {
  const claimed = linesOf(note, key);
  return claimed.length > 0 && claimed.every(({ signature }) => isSigned(note.text, signature, key));
}

/** Signature type 0x01 of C2SP signed-note: Ed25519 over the text. */
const ED25519 = 0x01;
/** Signature type 0x04: a cosignature of a witness, over a time and the text. */
export const COSIGNATURE = 0x04;
const PUBLIC_KEY_BYTES = 32;
const KEY_ID_BYTES = 4;

export interface VerifierKey {
  readonly name: string;
  readonly type: number;
  /** 4 bytes. With the name it identifies the key; it is too short to prove anything. */
  readonly id: Buffer;
  /** 32 bytes (RFC 8032). */
  readonly publicKey: Buffer;
}

/** Refuses all Unicode spaces, control characters and the plus. */
function isKeyName(name: string): boolean {
  return name.isWellFormed() && /^[^\s\p{Cc}+]+$/u.test(name);
}

/** @throws {TypeError} for a name that a note cannot carry, or a key that is not 32 bytes */
export function createVerifierKey(name: string, publicKey: Uint8Array, type = ED25519): VerifierKey {
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

/**
 * Null unless every part is valid, the id included. The first two pluses separate the parts: base64 contains
 * pluses too.
 */
export function parseVkey(text: string, type = ED25519): VerifierKey | null {
  const [, name, base64] = /^([^+]*)\+[^+]*\+(.*)$/s.exec(text) ?? [];
  if (name === undefined || base64 === undefined || !isKeyName(name)) return null;
  const typed = decodeBase64(base64);
  if (typed?.length !== 1 + PUBLIC_KEY_BYTES) return null;
  const key = createVerifierKey(name, typed.subarray(1), type);
  return formatVkey(key) === text ? key : null;
}

const TIME_BYTES = 8;

const signedText = (text: string, time: number): string => `cosignature/v1\ntime ${time}\n${text}`;

/**
 * C2SP tlog-cosignature, `cosignature/v1`: at this time, the checkpoint was the longest of its log that the
 * witness knew. The latest cosignature of this witness, with its time in epoch seconds. Null: it did not
 * cosign, or a line in its name is invalid.
 */
export function cosignatureOf(note: SignedNote, key: VerifierKey) {
  const all = linesOf(note, key).map((one) => {
    const { signature } = one;
    const time = signature.length > TIME_BYTES ? Number(signature.readBigUInt64BE()) : Number.NaN;
    const holds =
      Number.isSafeInteger(time) &&
      isSigned(signedText(note.text, time), signature.subarray(TIME_BYTES), key);
    return holds ? { time, line: formatSignature(one) } : null;
  });
  const good = all.filter((one) => one !== null).sort((a, b) => b.time - a.time);
  return good.length === all.length ? (good[0] ?? null) : null;
}

/** C2SP tlog-checkpoint: the signed head of a log. */
export interface Checkpoint {
  /** The log's name: the first line, and the name of its key. */
  readonly origin: string;
  readonly size: number;
  /** RFC 6962 root of the first `size` entries. */
  readonly root: Buffer;
}

export type CheckpointRefusal = 'malformed-checkpoint' | 'not-signed' | 'other-log';

export type CheckpointResult =
  | { readonly ok: true; readonly checkpoint: Checkpoint }
  | { readonly ok: false; readonly why: CheckpointRefusal };

/** A decimal without leading zeros, or null. */
export function parseDecimal(text: string): number | null {
  const value = Number(text);
  return /^(0|[1-9]\d*)$/.test(text) && Number.isSafeInteger(value) ? value : null;
}

/** A SHA-256 hash as padded base64, or null. */
export function parseHash(text: string): Buffer | null {
  const bytes = decodeBase64(text);
  return bytes?.length === HASH_BYTES ? bytes : null;
}

export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${root.toString('base64')}\n`;
}

/**
 * Null unless it is exactly these three lines. Extension lines are refused: no gpd log writes them, and no
 * monitor could audit them.
 */
export function parseCheckpoint(text: string): Checkpoint | null {
  const [origin, digits, base64, end, ...extensionLines] = text.split('\n');
  if (!origin || digits === undefined || base64 === undefined || end !== '' || extensionLines.length > 0)
    return null;
  const size = parseDecimal(digits);
  const root = parseHash(base64);
  return size === null || root === null ? null : { origin, size, root };
}

/**
 * The signed note. Sign it only if it extends every checkpoint signed before: two that disagree prove a
 * forked log.
 */
export function signCheckpoint(size: number, root: Buffer, signer: NoteSigner): string {
  return signNote(formatCheckpoint({ origin: signer.name, size, root }), signer);
}

/** The checkpoint of a note, if the signature by `key` is valid and its origin is the name of that key. */
export function verifyCheckpoint(note: string, key: VerifierKey): CheckpointResult {
  const signed = parseNote(note);
  if (signed === null) return { ok: false, why: 'malformed-checkpoint' };
  if (!verifyNote(signed, key)) return { ok: false, why: 'not-signed' };
  const checkpoint = parseCheckpoint(signed.text);
  if (checkpoint === null) return { ok: false, why: 'malformed-checkpoint' };
  return checkpoint.origin === key.name ? { ok: true, checkpoint } : { ok: false, why: 'other-log' };
}

/** The checkpoint of a note, if the log with this key signed it; otherwise null. */
export function signedCheckpoint(note: string, vkey: string): Checkpoint | null {
  const key = parseVkey(vkey);
  const verified = key && verifyCheckpoint(note, key);
  return verified?.ok ? verified.checkpoint : null;
}

/**
 * The origin line of a tenant's log: `<host of the base URL>/ledger/<kid>`, with the port unless it is the
 * default. Fixed when the tenant is made: a new base URL must not rename a log that proofs name.
 */
export function logOrigin(baseUrl: string, kid: string): string {
  return `${new URL(baseUrl).host}/ledger/${kid}`;
}
