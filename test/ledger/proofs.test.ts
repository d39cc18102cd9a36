import { describe, expect, it } from 'vitest';
import {
  appendLeaves,
  consistencyProof,
  EMPTY_FRONTIER,
  EMPTY_ROOT,
  frontierRoot,
  type HashReader,
  inclusionProof,
  nodeHash,
  rootAt,
} from '../../src/ledger/merkle.ts';
import { verifyConsistency } from '../../src/ledger/verify.ts';
import { treeHead } from '../consent/app/support/naive-log.ts';
import { verifyInclusion } from '../support/log-reader.ts';
import { fc } from '../support/property.ts';
import { createLeaves, createLog, flipBit } from './support.ts';

const leaves = createLeaves(1300);
const { reader } = createLog(leaves);
const sizes = fc.integer({ min: 1, max: leaves.length });

/** Each proof with one bit changed, one hash missing, one too many, and two swapped. */
function spoilt(proof: readonly Buffer[], bit: number): Buffer[][] {
  const at = bit % Math.max(proof.length, 1);
  const hash = proof[at];
  const extra = [Buffer.alloc(32, 7), Buffer.alloc(0)];
  const longer = extra.flatMap((extraHash) => [
    [...proof, extraHash],
    [extraHash, ...proof],
  ]);
  if (hash === undefined) return longer;
  const changed = proof.with(at, flipBit(hash, bit % 256));
  const swapped = proof.length > 1 ? [[...proof].reverse()] : [];
  return [changed, proof.toSpliced(at, 1), proof.with(at, hash.subarray(1)), ...swapped, ...longer];
}

describe('an inclusion proof', () => {
  it('verifies for every leaf of every size up to 48', async () => {
    for (let size = 1; size <= 48; size += 1) {
      const root = treeHead(leaves.slice(0, size));
      for (let index = 0; index < size; index += 1) {
        const proof = await inclusionProof(index, size, reader);
        expect(verifyInclusion(index, size, leaves[index]!, proof, root), `${index} of ${size}`).toBe(true);
      }
    }
  });

  it('is not made of a leaf that the log does not have', async () => {
    const missing = [
      [0, 0],
      [7, 7],
      [-1, 7],
      [0.5, 7],
      [0, Number.NaN],
    ] as const;
    for (const [index, size] of missing) {
      await expect(inclusionProof(index, size, reader), `${index} of ${size}`).rejects.toThrow(RangeError);
    }
  });
});

describe('a consistency proof', () => {
  it('verifies for every two sizes up to 48', async () => {
    const roots = Array.from({ length: 49 }, (_, size) => treeHead(leaves.slice(0, size)));
    for (let size2 = 1; size2 <= 48; size2 += 1) {
      for (let size1 = 1; size1 <= size2; size1 += 1) {
        const proof = await consistencyProof(size1, size2, reader);
        expect(
          verifyConsistency(size1, size2, proof, roots[size1]!, roots[size2]!),
          `${size1} to ${size2}`,
        ).toBe(true);
      }
    }
  });

  it('verifies at random sizes, and with no other size, root or bit', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, sizes, fc.nat({ max: 2 ** 20 }), async (a, b, bit) => {
        const [size1, size2] = [Math.min(a, b), Math.max(a, b)];
        const [root1, root2] = [await rootAt(size1, reader), await rootAt(size2, reader)];
        const proof = await consistencyProof(size1, size2, reader);
        expect(verifyConsistency(size1, size2, proof, root1, root2)).toBe(true);
        for (const bad of spoilt(proof, bit)) {
          expect(verifyConsistency(size1, size2, bad, root1, root2)).toBe(false);
        }
        expect(verifyConsistency(size1, size2, proof, flipBit(root1, bit % 256), root2)).toBe(false);
        expect(verifyConsistency(size1, size2, proof, root1, flipBit(root2, bit % 256))).toBe(false);
        for (const other of [0, -1, size2 + 1, 0.5, Number.NaN]) {
          expect(verifyConsistency(other, size2, proof, root1, root2)).toBe(false);
        }
        if (size1 !== size2) expect(verifyConsistency(size2, size1, proof, root2, root1)).toBe(false);
      }),
      { numRuns: 150 },
    );
  });

  it('is never longer than its sizes have levels, even where the hashes of other logs fit', async () => {
    const proof = await consistencyProof(3, 4, reader);
    const [root1, root2] = [treeHead(leaves.slice(0, 3)), treeHead(leaves.slice(0, 4))];
    const extraHash = leaves[9]!;
    expect(verifyConsistency(3, 4, proof, root1, root2)).toBe(true);
    const longer = [...proof, extraHash];
    expect(verifyConsistency(3, 4, longer, nodeHash(extraHash, root1), nodeHash(extraHash, root2))).toBe(
      false,
    );
  });

  it('is of hashes of 32 bytes only: two of other lengths can join to the same 64 bytes', async () => {
    const [root1, root2] = [treeHead(leaves.slice(0, 2)), treeHead(leaves.slice(0, 4))];
    const [sibling = Buffer.alloc(0)] = await consistencyProof(2, 4, reader);
    const longer = Buffer.concat([root1, sibling.subarray(0, 1)]);
    expect(verifyConsistency(2, 4, [sibling], root1, root2)).toBe(true);
    expect(verifyConsistency(2, 4, [sibling.subarray(1)], longer, root2)).toBe(false);
  });

  it('is not made from an empty log, from a larger one or of no sizes', async () => {
    for (const [size1, size2] of [
      [0, 0],
      [0, 5],
      [6, 5],
      [1.5, 5],
      [1, Number.NaN],
    ] as const) {
      await expect(consistencyProof(size1, size2, reader), `${size1} to ${size2}`).rejects.toThrow(
        RangeError,
      );
    }
  });
});

describe('a log of whole tiles', () => {
  const edges = [255, 256, 257, 511, 512, 65_535, 65_536, 65_537, 65_793];
  const leaves = Array.from({ length: 65_793 }, (_, i) => {
    const leaf = Buffer.alloc(32);
    leaf.writeUInt32BE(i, 28);
    return leaf;
  });
  const log = createLog(leaves);
  const rootOf = (size: number): Buffer =>
    frontierRoot(appendLeaves(EMPTY_FRONTIER, leaves.slice(0, size)).frontier);
  const roots = new Map(edges.map((size) => [size, rootOf(size)]));

  it('has the same root from stored hashes as from its leaves', async () => {
    for (const [size, root] of roots) expect(await rootAt(size, log.reader), `size ${size}`).toEqual(root);
    expect(await rootAt(0, log.reader)).toEqual(EMPTY_ROOT);
  });

  it('proves inclusion at every edge', async () => {
    for (const [size, root] of roots) {
      const indexes = [
        0,
        1,
        127,
        128,
        254,
        255,
        256,
        257,
        65_279,
        65_280,
        65_535,
        65_536,
        size - 2,
        size - 1,
      ];
      for (const index of indexes.filter((each) => each < size)) {
        const proof = await inclusionProof(index, size, log.reader);
        expect(verifyInclusion(index, size, leaves[index]!, proof, root), `${index} of ${size}`).toBe(true);
      }
    }
  });

  it('proves consistency between every two edges', async () => {
    for (const [size1, root1] of [...roots, [1, leaves[0]!] as const, [300, rootOf(300)] as const]) {
      for (const [size2, root2] of [...roots].filter(([size]) => size >= size1)) {
        const proof = await consistencyProof(size1, size2, log.reader);
        expect(verifyConsistency(size1, size2, proof, root1, root2), `${size1} to ${size2}`).toBe(true);
      }
    }
  });

  it('reads two tiles a level at most, and no hash beyond the size asked for', async () => {
    for (const size of edges) {
      for (const index of [0, 300, size - 1].filter((each) => each < size)) {
        log.reads.length = 0;
        await inclusionProof(index, size, log.reader);
        expect(log.reads.length).toBeLessThanOrEqual(2 * 3);
        for (const { level, end } of log.reads)
          expect(end).toBeLessThanOrEqual(Math.floor(size / 256 ** level));
      }
    }
  });

  it('says so when stored hashes are missing, and passes on why a read failed', async () => {
    const shortReader: HashReader = { read: async (...span) => (await log.reader.read(...span)).slice(1) };
    await expect(inclusionProof(5, 300, shortReader)).rejects.toThrow('the log lacks hashes');
    await expect(consistencyProof(5, 300, shortReader)).rejects.toThrow('the log lacks hashes');
    const broken: HashReader = { read: () => Promise.reject(new Error('disk')) };
    await expect(rootAt(300, broken)).rejects.toThrow('disk');
  });
});
