import { openSync, read, statSync } from 'node:fs';

/** Looks whether any of these ids stands in a file, byte for byte: what an erasure promises is looked at, not assumed. */

const descriptors = new Map<string, number>();

/**
 * A descriptor that this process never closes. Closing any descriptor of a file drops all locks that the process has on it
 * (fcntl(2), "Advisory record locking"), those of SQLite's connections as well: the next program that opens and closes the
 * database would take itself for the last one and remove the write-ahead log beneath the server (sqlite.org/howtocorrupt.html,
 * section 2.2). The number of a FileHandle that nobody holds is closed by the collector: this is a plain one.
 */
function keptOpen(path: string): number | null {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) return null;
  // An inode that is held open is no other file's.
  const key = `${stat.dev}:${stat.ino}`;
  const descriptor = descriptors.get(key) ?? openSync(path, 'r');
  descriptors.set(key, descriptor);
  return descriptor;
}

const CHUNK_BYTES = 1 << 20;
const PREFIX = Buffer.from('req_');
const REQUEST_ID_BYTES = 30;

export interface Needles {
  /** `req_…`: there may be thousands, found by their prefix in one pass. */
  readonly requests: ReadonlySet<string>;
  readonly others: readonly string[];
}

function holds(bytes: Buffer, needles: Needles, others: readonly Buffer[]): boolean {
  if (others.some((needle) => bytes.includes(needle))) return true;
  if (needles.requests.size === 0) return false;
  for (let at = bytes.indexOf(PREFIX); at !== -1; at = bytes.indexOf(PREFIX, at + 1)) {
    if (needles.requests.has(bytes.toString('latin1', at, at + REQUEST_ID_BYTES))) return true;
  }
  return false;
}

function readAt(descriptor: number, into: Buffer, offset: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(descriptor, into, offset, CHUNK_BYTES, position, (error, bytes) =>
      error ? reject(error) : resolve(bytes),
    );
  });
}

/** @param path of a database that may be open in this process */
export async function fileHolds(path: string, needles: Needles): Promise<boolean> {
  const file = keptOpen(path);
  if (file === null) return false;
  const others = needles.others.map((text) => Buffer.from(text));
  const overlap = Math.max(REQUEST_ID_BYTES, ...others.map((needle) => needle.length)) - 1;
  const buffer = Buffer.alloc(overlap + CHUNK_BYTES);
  let kept = 0;
  for (let at = 0; ; ) {
    const bytesRead = await readAt(file, buffer, kept, at);
    if (bytesRead === 0) return false;
    at += bytesRead;
    const bytes = buffer.subarray(0, kept + bytesRead);
    if (holds(bytes, needles, others)) return true;
    kept = Math.min(overlap, bytes.length);
    // An id may lie across two pieces.
    buffer.copy(buffer, 0, bytes.length - kept, bytes.length);
  }
}
