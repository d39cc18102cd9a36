import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import {
  type BackupCipher,
  CHUNK_BYTES,
  headerLength,
  PREAMBLE_BYTES,
  readHeader,
  SEALED_CHUNK_BYTES,
} from '../keys/backup-format.ts';
import { closing } from '../lib/closing.ts';

/** Bytes of a backup on their way in and out, a chunk at a time. */

export class DamagedBackup extends Error {
  constructor(file: string, what: string) {
    super(`${file}: ${what}`);
    this.name = 'DamagedBackup';
  }
}

type Bytes = AsyncIterable<Uint8Array>;

interface Piece {
  readonly bytes: Buffer;
  readonly index: number;
  readonly last: boolean;
}

/** Pieces of one size, of which the last may be shorter; one piece for nothing at all. */
async function* pieces(source: Bytes, size: number): AsyncGenerator<Piece> {
  let waiting: Uint8Array[] = [];
  let held = 0;
  let index = 0;
  for await (const chunk of source) {
    waiting.push(chunk);
    held += chunk.length;
    // One byte more than a piece has to be there: only then it is not the last.
    if (held <= size) continue;
    let rest = Buffer.concat(waiting, held);
    while (rest.length > size) {
      yield { bytes: rest.subarray(0, size), index, last: false };
      index += 1;
      rest = rest.subarray(size);
    }
    waiting = [rest];
    held = rest.length;
  }
  yield { bytes: Buffer.concat(waiting, held), index, last: true };
}

export async function* sealBytes(source: Bytes, cipher: BackupCipher): AsyncGenerator<Buffer> {
  for await (const { bytes, index, last } of pieces(source, CHUNK_BYTES))
    yield cipher.seal(index, last, bytes);
}

/** Where the parts begin, and what the file says of itself. */
export type BackupHead = Awaited<ReturnType<typeof readHead>>;

async function readFully(handle: FileHandle, length: number, at: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, at);
  return buffer.subarray(0, bytesRead);
}

/** @throws {DamagedBackup} when the file is no backup */
export async function readHead(file: string) {
  return closing(open(file, 'r'), async (handle) => {
    const preamble = await readFully(handle, PREAMBLE_BYTES, 0);
    const length = headerLength(preamble);
    if (length === null) throw new DamagedBackup(file, 'this is no backup of gpd');
    const json = await readFully(handle, length, PREAMBLE_BYTES);
    const header = json.length === length ? readHeader(json) : null;
    if (!header) throw new DamagedBackup(file, 'its beginning is damaged; use another backup');
    return { header, bytes: Buffer.concat([preamble, json]) };
  });
}

/** @throws {DamagedBackup} at the first chunk that is not the one that was written */
export async function* openBytes(
  file: string,
  head: BackupHead,
  cipher: BackupCipher,
): AsyncGenerator<Buffer> {
  const source = createReadStream(file, { start: head.bytes.length, highWaterMark: SEALED_CHUNK_BYTES });
  for await (const { bytes, index, last } of pieces(source, SEALED_CHUNK_BYTES)) {
    const opened = cipher.open(index, last, bytes);
    if (!opened) throw new DamagedBackup(file, 'it is damaged or was changed; use another backup');
    yield opened;
  }
}

/** Passes bytes through, counting and hashing them. */
export function meter(onBytes: (count: number) => void): {
  readonly hash: Hash;
  readonly pass: (source: Bytes) => AsyncGenerator<Uint8Array>;
} {
  const hash = createHash('sha256');
  async function* pass(source: Bytes): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
      hash.update(chunk);
      onBytes(chunk.length);
      yield chunk;
    }
  }
  return { hash, pass };
}

/** What the operator can do something about, in one sentence. */
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
