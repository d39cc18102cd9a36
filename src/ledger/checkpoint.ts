import { decodeBase64 } from '../lib/base64.ts';
import { HASH_BYTES } from './merkle.ts';
import { type NoteSigner, parseNote, signNote, verifyNote } from './note.ts';
import { parseVkey, type VerifierKey } from './vkey.ts';

/** C2SP tlog-checkpoint: the signed head of a log. */

export interface Checkpoint {
  /** What the log is called: the first line, and the name of its key. */
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

/** Null unless it is these three lines. Extension lines are refused: no gpd log writes any, and no monitor can audit one. */
export function parseCheckpoint(text: string): Checkpoint | null {
  const [origin, digits, base64, end, ...more] = text.split('\n');
  if (!origin || digits === undefined || base64 === undefined || end !== '' || more.length > 0) return null;
  const size = parseDecimal(digits);
  const root = parseHash(base64);
  return size === null || root === null ? null : { origin, size, root };
}

/** The signed note. Sign only what extends every checkpoint signed before: two that disagree are proof of a forked log. */
export function signCheckpoint(size: number, root: Buffer, signer: NoteSigner): string {
  return signNote(formatCheckpoint({ origin: signer.name, size, root }), signer);
}

/** The checkpoint of a note, once its signature by `key` holds and its origin is the name of that key. */
export function verifyCheckpoint(note: string, key: VerifierKey): CheckpointResult {
  const signed = parseNote(note);
  if (signed === null) return { ok: false, why: 'malformed-checkpoint' };
  if (!verifyNote(signed, key)) return { ok: false, why: 'not-signed' };
  const checkpoint = parseCheckpoint(signed.text);
  if (checkpoint === null) return { ok: false, why: 'malformed-checkpoint' };
  return checkpoint.origin === key.name ? { ok: true, checkpoint } : { ok: false, why: 'other-log' };
}

/** The checkpoint of a note that the log with this key signed, else null. */
export function signedCheckpoint(note: string, vkey: string): Checkpoint | null {
  const key = parseVkey(vkey);
  const verified = key && verifyCheckpoint(note, key);
  return verified?.ok ? verified.checkpoint : null;
}
