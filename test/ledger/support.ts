import type { HashReader } from '../../src/ledger/merkle.ts';
import { appendLeaves, EMPTY_FRONTIER, type Frontier, leafHash } from '../../src/ledger/merkle.ts';

export function createLeaves(count: number, from = 0): Buffer[] {
  return Array.from({ length: count }, (_, i) => leafHash(Buffer.from(`entry ${from + i}`)));
}

export interface MemoryLog {
  readonly frontier: Frontier;
  readonly reader: HashReader;
  /** start and end of every call to the reader, by level. */
  readonly reads: { readonly level: number; readonly start: number; readonly end: number }[];
}

/** A log that stores what a database would: the leaf hashes, and each completed subtree once. */
export function createLog(leaves: readonly Buffer[], batch = 1000): MemoryLog {
  const levels: Buffer[][] = [[...leaves]];
  const reads: MemoryLog['reads'] = [];
  let frontier = EMPTY_FRONTIER;
  for (let from = 0; from < leaves.length; from += batch) {
    const appended = appendLeaves(frontier, leaves.slice(from, from + batch));
    frontier = appended.frontier;
    for (const { level, index, hash } of appended.completed) {
      levels[level] ??= [];
      if (levels[level].length !== index) throw new Error(`subtree ${index} of level ${level} out of order`);
      levels[level].push(hash);
    }
  }
  const reader: HashReader = {
    async read(level, start, end) {
      reads.push({ level, start, end });
      if (start >= end || Math.floor(start / 256) !== Math.floor((end - 1) / 256))
        throw new Error('not in one tile');
      return (levels[level] ?? []).slice(start, end);
    },
  };
  return { frontier, reader, reads };
}

/** The bytes with one bit changed. */
export function flipBit(bytes: Uint8Array, bit: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return changed;
}
