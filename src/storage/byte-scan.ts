import { existsSync } from 'node:fs';
import { open } from 'node:fs/promises';

/** Looks whether any of these ids stands in a file, byte for byte: what an erasure promises is looked at, not assumed. */

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

export async function fileHolds(path: string, needles: Needles): Promise<boolean> {
  if (!existsSync(path)) return false;
  const others = needles.others.map((text) => Buffer.from(text));
  const overlap = Math.max(REQUEST_ID_BYTES, ...others.map((needle) => needle.length)) - 1;
  const file = await open(path, 'r');
  try {
    const buffer = Buffer.alloc(overlap + CHUNK_BYTES);
    let kept = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, kept, CHUNK_BYTES);
      if (bytesRead === 0) return false;
      const bytes = buffer.subarray(0, kept + bytesRead);
      if (holds(bytes, needles, others)) return true;
      kept = Math.min(overlap, bytes.length);
      // An id may lie across two pieces.
      buffer.copy(buffer, 0, bytes.length - kept, bytes.length);
    }
  } finally {
    await file.close();
  }
}
