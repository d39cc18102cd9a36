import { hash } from 'node:crypto';

/** RFC 6962 section 2.1 with SHA-256: the leading byte keeps a leaf from ever passing for a node. */

export const HASH_BYTES = 32;
const LEAF = Buffer.from([0x00]);
const NODE = Buffer.from([0x01]);

/** The root of a log without entries: SHA-256 of nothing. */
export const EMPTY_ROOT: Buffer = hash('sha256', '', 'buffer');

export function leafHash(entry: Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([LEAF, entry]), 'buffer');
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([NODE, left, right]), 'buffer');
}
