import { z } from 'zod';
import { decryptGcm, encryptGcm, equalBytes, GCM_IV_BYTES, type Random, sha256 } from '../lib/crypto.ts';
import { tryOr } from '../lib/errors.ts';
import type { MasterKey } from './master-key.ts';

/**
 * gpd-backup/1: the magic line, u32 length and JSON of a header, then chunks of AES-256-GCM. The key is derived from the
 * master key and a salt of the file's own; a chunk's IV holds its number and whether it is the last (the STREAM
 * construction of Hoang, Reyhanitabar, Rogaway and Vizár 2015), its additional data the hash of all that came before the
 * first chunk. So nothing can be changed, moved, cut off or added unnoticed.
 */

const BACKUP_MAGIC = Buffer.from('gpd-backup/1\n');
export const CHUNK_BYTES = 256 * 1024;
export const SEALED_CHUNK_BYTES = CHUNK_BYTES + 16;
/** Of the magic line and the length. */
export const PREAMBLE_BYTES = BACKUP_MAGIC.length + 4;
const MAX_HEADER_BYTES = 64 * 1024;
const SALT_BYTES = 32;
const CHECK_BYTES = 16;

const base64url = z.string().regex(/^[A-Za-z0-9_-]+$/);

const headerSchema = z.strictObject({
  v: z.literal(1),
  /** Before the database was copied. */
  createdAt: z.iso.datetime(),
  gpd: z.string(),
  /** The last migration that it has. */
  schema: z.string(),
  salt: base64url,
  /** Tells a wrong master key from a damaged file. */
  check: base64url,
  parts: z.array(z.strictObject({ name: z.string(), bytes: z.int().min(0) })),
});

export type BackupHeader = z.infer<typeof headerSchema>;

function chunkIv(index: number, last: boolean): Buffer {
  const iv = Buffer.alloc(GCM_IV_BYTES);
  iv.writeUIntBE(index, GCM_IV_BYTES - 7, 6);
  iv[GCM_IV_BYTES - 1] = last ? 1 : 0;
  return iv;
}

export type BackupCipher = ReturnType<typeof createCipher>;

function createCipher(masterKey: MasterKey, salt: Uint8Array, headerBytes: Uint8Array) {
  const key = masterKey.derive(salt, 'gpd-backup/1 key');
  const aad = sha256(headerBytes);
  return {
    encrypt: (index: number, last: boolean, plaintext: Uint8Array) =>
      encryptGcm(key, chunkIv(index, last), aad, plaintext),
    /** Null: the chunk is not the one that was written here. */
    decrypt: (index: number, last: boolean, ciphertext: Uint8Array) =>
      decryptGcm(key, chunkIv(index, last), aad, ciphertext),
  };
}

function checkOf(masterKey: MasterKey, salt: Uint8Array): Buffer {
  return masterKey.derive(salt, 'gpd-backup/1 check').subarray(0, CHECK_BYTES);
}

export type BackupFacts = Pick<BackupHeader, 'createdAt' | 'gpd' | 'schema' | 'parts'>;

/** What a new file begins with, and the cipher of what follows. */
export function beginBackup(masterKey: MasterKey, facts: BackupFacts, random: Random) {
  const salt = random(SALT_BYTES);
  const header: BackupHeader = {
    v: 1,
    ...facts,
    salt: salt.toString('base64url'),
    check: checkOf(masterKey, salt).toString('base64url'),
  };
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  const head = Buffer.concat([BACKUP_MAGIC, length, json]);
  return { head, cipher: createCipher(masterKey, salt, head) };
}

/** The length of the header; null: this is no backup. */
export function headerLength(preamble: Uint8Array): number | null {
  const bytes = Buffer.from(preamble);
  if (bytes.length < PREAMBLE_BYTES || !equalBytes(bytes.subarray(0, BACKUP_MAGIC.length), BACKUP_MAGIC)) {
    return null;
  }
  const length = bytes.readUInt32BE(BACKUP_MAGIC.length);
  return length <= MAX_HEADER_BYTES ? length : null;
}

/** Null: the header is damaged. Nothing in it is to be believed before a chunk has opened. */
export const readHeader = (json: Uint8Array): BackupHeader | null =>
  tryOr(() => headerSchema.parse(JSON.parse(Buffer.from(json).toString())), null);

/** Null: the backup was made under another master key. */
export function openBackup(masterKey: MasterKey, header: BackupHeader, headBytes: Uint8Array) {
  const salt = Buffer.from(header.salt, 'base64url');
  const check = Buffer.from(header.check, 'base64url');
  return equalBytes(check, checkOf(masterKey, salt)) ? createCipher(masterKey, salt, headBytes) : null;
}
