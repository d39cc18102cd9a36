import { constants, createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import {
  type BackupCipher,
  CHUNK_BYTES,
  headerLength,
  PREAMBLE_BYTES,
  readHeader,
  SEALED_CHUNK_BYTES,
} from '../keys/backup-format.ts';
import { withClosing } from '../lib/collections.ts';
import { pieces } from '../lib/pass-bytes.ts';

/** Encrypts and decrypts a backup file chunk by chunk, and reads its header. */

export class DamagedBackup extends Error {
  constructor(file: string, problem: string) {
    super(`${file}: ${problem}`);
    this.name = 'DamagedBackup';
  }
}

export async function* encryptBytes(source: AsyncIterable<Uint8Array>, cipher: BackupCipher) {
  for await (const { bytes, index, last } of pieces(source, CHUNK_BYTES))
    yield cipher.encrypt(index, last, bytes);
}

/** The header of a backup file, and the bytes before its first chunk. */
export type BackupHead = Awaited<ReturnType<typeof readHead>>;

async function readFully(handle: FileHandle, length: number, at: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, at);
  return buffer.subarray(0, bytesRead);
}

/** @throws {DamagedBackup} when the file is no backup */
export async function readHead(file: string) {
  // Without O_NONBLOCK the open of a FIFO would wait for a writer, and a signal would not end it.
  return withClosing(open(file, constants.O_RDONLY | constants.O_NONBLOCK), async (handle) => {
    if (!(await handle.stat()).isFile()) throw new DamagedBackup(file, 'not a regular file');
    const preamble = await readFully(handle, PREAMBLE_BYTES, 0);
    const length = headerLength(preamble);
    if (length === null) throw new DamagedBackup(file, 'not a backup made by gpd');
    const json = await readFully(handle, length, PREAMBLE_BYTES);
    const header = json.length === length ? readHeader(json) : null;
    if (!header) throw new DamagedBackup(file, 'its beginning is damaged; use another backup');
    return { header, bytes: Buffer.concat([preamble, json]) };
  });
}

/** @throws {DamagedBackup} at the first chunk that was changed, moved or cut off */
export async function* decryptBytes(file: string, head: BackupHead, cipher: BackupCipher) {
  const source = createReadStream(file, { start: head.bytes.length, highWaterMark: SEALED_CHUNK_BYTES });
  for await (const { bytes, index, last } of pieces(source, SEALED_CHUNK_BYTES)) {
    const opened = cipher.decrypt(index, last, bytes);
    if (!opened) throw new DamagedBackup(file, 'it is damaged or was changed; use another backup');
    yield opened;
  }
}

/** A failure that the operator can remedy; the message says how, in one sentence. */
export class BackupFailed extends Error {
  readonly conflict: boolean;

  constructor(message: string, conflict = false) {
    super(message);
    this.name = 'BackupFailed';
    this.conflict = conflict;
  }
}

export const inUse = (path: string): BackupFailed =>
  new BackupFailed(`${path} is in use: stop the server and every command on it first`, true);
