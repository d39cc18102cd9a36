import { openSync, read, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

/**
 * Finds which ids are in a file, byte for byte. An erasure uses it to prove that nothing is left in the
 * database files.
 */

const descriptors = new Map<string, number>();

/**
 * A descriptor that this process never closes. Closing any descriptor of a file drops all locks that the
 * process has on it (fcntl(2), "Advisory record locking"), those of SQLite's connections as well: the next
 * program that opens and closes the database would take itself for the last one and remove the write-ahead
 * log beneath the server (sqlite.org/howtocorrupt.html, section 2.2). The number of a FileHandle that nobody
 * holds is closed by the collector: this is a plain one.
 */
function openForever(path: string): number | null {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) return null;
  // The system gives an inode to no other file while it is open.
  const key = `${stat.dev}:${stat.ino}`;
  const descriptor = descriptors.get(key) ?? openSync(path, 'r');
  descriptors.set(key, descriptor);
  return descriptor;
}

const SLICE_BYTES = 256 * 1024;
const PREFIX = Buffer.from('req_');
const REQUEST_ID_BYTES = 30;
/** After each slice a pause of four times its length: the search takes a fifth of the event loop at most. */
const PAUSES = 4;
/** A small file is searched within a second or two; a large one is read at up to 64 MB per second. */
const QUICK_BYTES = 256 * 1024 * 1024;
const SLOW_PAUSE_MS = 4;

export interface SoughtIds {
  /** `req_…`: there may be thousands, found by their prefix in one pass. */
  readonly requests: ReadonlySet<string>;
  readonly others: ReadonlySet<string>;
}

type Find = (bytes: Buffer, found: Set<string>) => void;

function findRequests(requests: ReadonlySet<string>): Find {
  return (bytes, found) => {
    for (let at = bytes.indexOf(PREFIX); at !== -1; at = bytes.indexOf(PREFIX, at + 1)) {
      const id = bytes.toString('latin1', at, at + REQUEST_ID_BYTES);
      if (requests.has(id)) found.add(id);
    }
  };
}

function findFew(ids: readonly string[]): Find {
  const needles = ids.map((id) => [id, Buffer.from(id)] as const);
  return (bytes, found) => {
    for (const [id, needle] of needles) if (!found.has(id) && bytes.includes(needle)) found.add(id);
  };
}

/**
 * Up to this many ids, one search per id is faster than one pass for all (measured: 5 GB/s per id, 0.3 GB/s
 * for all).
 */
const MAX_SINGLE_SEARCHES = 16;
const KEY_BYTES = 3;
const keyAt = (bytes: Buffer, at: number): number => bytes.readUIntLE(at, KEY_BYTES);

/** Looks up the first three bytes of each position in a table. */
function findMany(ids: readonly string[]): Find {
  const starts = new Uint8Array(1 << (8 * KEY_BYTES - 3));
  const byStart = new Map<number, (readonly [string, Buffer])[]>();
  for (const id of ids) {
    const needle = Buffer.from(id);
    const key = keyAt(needle, 0);
    starts[key >> 3] = (starts[key >> 3] ?? 0) | (1 << (key & 7));
    byStart.set(key, [...(byStart.get(key) ?? []), [id, needle]]);
  }
  return (bytes, found) => {
    let key = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      key = (key >>> 8) | ((bytes[at] ?? 0) << 16);
      if (((starts[key >> 3] ?? 0) & (1 << (key & 7))) === 0) continue;
      const from = at - KEY_BYTES + 1;
      for (const [id, needle] of byStart.get(key) ?? [])
        if (from >= 0 && bytes.subarray(from, from + needle.length).equals(needle)) found.add(id);
    }
  };
}

function finderOf({ requests, others: otherIds }: SoughtIds): Find {
  const ids = [...otherIds].filter((id) => id.length >= KEY_BYTES);
  const finds = [
    ...(requests.size > 0 ? [findRequests(requests)] : []),
    ...(ids.length > 0 ? [ids.length > MAX_SINGLE_SEARCHES ? findMany(ids) : findFew(ids)] : []),
  ];
  return (bytes, found) => {
    for (const find of finds) find(bytes, found);
  };
}

/** Its promise also gives the number of bytes read. */
const readAt = promisify(read);
/**
 * Finds these ids in the file. It reads slices with pauses, so that requests are answered meanwhile.
 * @param path of a database that may be open in this process
 * @param mayHurry true: without pauses
 */
export async function idsInFile(path: string, needles: SoughtIds, mayHurry: () => boolean = () => false) {
  const found = new Set<string>();
  const file = openForever(path);
  if (file === null || needles.requests.size + needles.others.size === 0) return found;
  const find = finderOf(needles);
  const longest = Math.max(REQUEST_ID_BYTES, ...[...needles.others].map((id) => Buffer.byteLength(id)));
  const overlap = longest - 1;
  const buffer = Buffer.alloc(overlap + SLICE_BYTES);
  let carriedBytes = 0;
  for (let at = 0; ; ) {
    const { bytesRead } = await readAt(file, buffer, carriedBytes, SLICE_BYTES, at);
    if (bytesRead === 0) return found;
    at += bytesRead;
    const bytes = buffer.subarray(0, carriedBytes + bytesRead);
    const startedAt = performance.now();
    find(bytes, found);
    carriedBytes = Math.min(overlap, bytes.length);
    // An id may lie across two slices.
    buffer.copy(buffer, 0, bytes.length - carriedBytes, bytes.length);
    const pause = PAUSES * (performance.now() - startedAt);
    if (!mayHurry()) await sleep(at < QUICK_BYTES ? pause : Math.max(SLOW_PAUSE_MS, pause));
  }
}
