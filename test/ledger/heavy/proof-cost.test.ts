import { describe, expect, it } from 'vitest';
import {
  appendLeaves,
  EMPTY_FRONTIER,
  frontierRoot,
  HASH_BYTES,
  type HashReader,
  inclusionProof,
} from '../../../src/ledger/merkle.ts';
import { verifyInclusion } from '../../support/log-reader.ts';

interface CostlyLog {
  readonly root: Buffer;
  readonly reader: HashReader;
  readonly leafAt: (index: number) => Buffer;
  calls: number;
  hashes: number;
}

/** Leaves are counters in one block of memory, so that a million of them are cheap. */
function createLargeLog(size: number): CostlyLog {
  const block = Buffer.alloc(size * HASH_BYTES);
  for (let i = 0; i < size; i += 1) block.writeUInt32BE(i, i * HASH_BYTES);
  const leafAt = (i: number): Buffer => block.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES);
  const range = (start: number, end: number): Buffer[] =>
    Array.from({ length: end - start }, (_, i) => leafAt(start + i));
  const levels = new Map<number, Buffer[]>();
  let frontier = EMPTY_FRONTIER;
  for (let from = 0; from < size; from += 10_000) {
    const appended = appendLeaves(frontier, range(from, Math.min(from + 10_000, size)));
    frontier = appended.frontier;
    for (const { level, hash } of appended.completed) levels.set(level, [...(levels.get(level) ?? []), hash]);
  }
  const log: CostlyLog = {
    root: frontierRoot(frontier),
    leafAt,
    calls: 0,
    hashes: 0,
    reader: {
      async read(level, start, end) {
        log.calls += 1;
        log.hashes += end - start;
        return level === 0 ? range(start, end) : (levels.get(level) ?? []).slice(start, end);
      },
    },
  };
  return log;
}

describe('the cost of an inclusion proof', () => {
  const PROOFS = 200;
  const measured: string[] = [];

  it.each([
    [1_000, 2],
    [1_000_000, 3],
  ])('at %i entries is bounded by its %i levels of tiles', async (size, levels) => {
    const log = createLargeLog(size);
    const proofs = Array.from({ length: PROOFS }, (_, i) => Math.floor((i * size) / PROOFS));
    await inclusionProof(0, size, log.reader);
    [log.calls, log.hashes] = [0, 0];
    const start = process.hrtime.bigint();
    const results = [];
    for (const index of proofs) results.push(await inclusionProof(index, size, log.reader));
    const micros = Number(process.hrtime.bigint() - start) / 1000 / PROOFS;
    for (const [i, proof] of results.entries()) {
      const index = proofs[i] ?? 0;
      expect(verifyInclusion(index, size, log.leafAt(index), proof, log.root), `${index} of ${size}`).toBe(
        true,
      );
    }
    expect(log.calls / PROOFS).toBeLessThanOrEqual(2 * levels);
    expect(log.hashes / PROOFS).toBeLessThanOrEqual(2 * levels * 256);
    const reads = `${(log.calls / PROOFS).toFixed(1)} reads of ${Math.round(log.hashes / PROOFS)} hashes`;
    measured.push(`${size} entries: ${micros.toFixed(0)} us, ${reads}`);
    if (measured.length === 2) console.log(`an inclusion proof: ${measured.join('; ')}`);
  });
});
