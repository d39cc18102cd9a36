import { z } from 'zod';
import { decryptGcm, encryptGcm, equalBytes, GCM_IV_BYTES, type Random, sha256 } from '../lib/crypto.ts';
import { tryOr } from '../lib/errors.ts';
import type { MasterKey } from './master-key.ts';

/**
 * The format of a backup file, gpd-backup/1, without any file access: ops writes
 * and reads the files. A file has the magic line, the u32 length of a JSON header,
 * the header, and chunks of AES-256-GCM under a key from the master key and a salt.
 *
 * The IV of a chunk contains its number and whether it is the last (STREAM,
 * https://eprint.iacr.org/2015/189); its additional data is the hash of everything
 * before the first chunk. So every change, move, cut or addition is detected.
 */

const BACKUP_MAGIC = Buffer.from('gpd-backup/1\n');
export const CHUNK_BYTES = 256 * 1024;
export const SEALED_CHUNK_BYTES = CHUNK_BYTES + 16;
/** The magic line and the length of the header. */
export const PREAMBLE_BYTES = BACKUP_MAGIC.length + 4;
const MAX_HEADER_BYTES = 64 * 1024;
const SALT_BYTES = 32;
const CHECK_BYTES = 16;

const base64url = z.string().regex(/^[A-Za-z0-9_-]+$/);

const headerSchema = z.strictObject({
  v: z.literal(1),
  /** A time before the copy of the database began. */
  createdAt: z.iso.datetime(),
  gpd: z.string(),
  /** The name of the last migration in the database. */
  schema: z.string(),
  salt: base64url,
  /** Distinguishes a wrong master key from a damaged file. */
  check: base64url,
  parts: z.array(z.strictObject({ name: z.string(), bytes: z.int().min(0) })),
});

export type BackupHeader = z.infer<typeof headerSchema>;

function chunkIv(index: number, isLast: boolean): Buffer {
  const iv = Buffer.alloc(GCM_IV_BYTES);
  iv.writeUIntBE(index, GCM_IV_BYTES - 7, 6);
  iv[GCM_IV_BYTES - 1] = isLast ? 1 : 0;
  return iv;
}

export type BackupCipher = ReturnType<typeof createCipher>;

function createCipher(masterKey: MasterKey, salt: Uint8Array, headerBytes: Uint8Array) {
  const key = masterKey.derive(salt, 'gpd-backup/1 key');
  const aad = sha256(headerBytes);
  return {
    encrypt: (index: number, last: boolean, plaintext: Uint8Array) =>
      encryptGcm(key, chunkIv(index, last), aad, plaintext),
    /** @returns null if this is not the chunk that was written at this place */
    decrypt: (index: number, last: boolean, ciphertext: Uint8Array) =>
      decryptGcm(key, chunkIv(index, last), aad, ciphertext),
  };
}

function deriveCheck(masterKey: MasterKey, salt: Uint8Array): Buffer {
  return masterKey.derive(salt, 'gpd-backup/1 check').subarray(0, CHECK_BYTES);
}

export type BackupFacts = Pick<BackupHeader, 'createdAt' | 'gpd' | 'schema' | 'parts'>;

/** @returns the first bytes of a new file, and the cipher for its chunks */
export function beginBackup(masterKey: MasterKey, facts: BackupFacts, random: Random) {
  const salt = random(SALT_BYTES);
  const header: BackupHeader = {
    v: 1,
    ...facts,
    salt: salt.toString('base64url'),
    check: deriveCheck(masterKey, salt).toString('base64url'),
  };
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  const headerBytes = Buffer.concat([BACKUP_MAGIC, length, json]);
  return { head: headerBytes, cipher: createCipher(masterKey, salt, headerBytes) };
}

/** @returns the bytes of the header; null if the file is no backup */
export function headerLength(preamble: Uint8Array): number | null {
  const bytes = Buffer.from(preamble);
  if (bytes.length < PREAMBLE_BYTES || !equalBytes(bytes.subarray(0, BACKUP_MAGIC.length), BACKUP_MAGIC)) {
    return null;
  }
  const length = bytes.readUInt32BE(BACKUP_MAGIC.length);
  return length <= MAX_HEADER_BYTES ? length : null;
}

/** The header is not authenticated until the first chunk decrypts. @returns null if it is damaged */
export const readHeader = (json: Uint8Array): BackupHeader | null =>
  tryOr(() => headerSchema.parse(JSON.parse(Buffer.from(json).toString())), null);

/** @returns null if the backup was made with another master key */
export function openBackup(masterKey: MasterKey, header: BackupHeader, headerBytes: Uint8Array) {
  const salt = Buffer.from(header.salt, 'base64url');
  const check = Buffer.from(header.check, 'base64url');
  return equalBytes(check, deriveCheck(masterKey, salt)) ? createCipher(masterKey, salt, headerBytes) : null;
}
