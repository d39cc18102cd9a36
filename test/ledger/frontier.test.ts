import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  appendLeaves,
  decodeFrontier,
  EMPTY_FRONTIER,
  EMPTY_ROOT,
  encodeFrontier,
  frontierRoot,
  leafHash,
  nodeHash,
} from '../../src/ledger/merkle.ts';
import { treeHead } from '../consent/app/support/naive-log.ts';
import { fc } from '../support/property.ts';
import { createLeaves } from './support.ts';

const sha256 = (...parts: readonly Buffer[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

describe('hashes', () => {
  it('are those of RFC 6962: a leaf after 0x00, a node after 0x01, nothing for an empty log', () => {
    const [a, b] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
    expect(leafHash(a)).toEqual(sha256(Buffer.from([0]), a));
    expect(nodeHash(a, b)).toEqual(sha256(Buffer.from([1]), a, b));
    expect(EMPTY_ROOT).toEqual(sha256());
    expect(leafHash(Buffer.alloc(0)).toString('hex')).toBe(
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    );
  });
});

describe('a frontier', () => {
  it('has the RFC 6962 root at every size from 0 to 600, grown leaf by leaf', () => {
    const leaves = createLeaves(600);
    let frontier = EMPTY_FRONTIER;
    expect(frontierRoot(frontier)).toEqual(EMPTY_ROOT);
    for (const [seq, leaf] of leaves.entries()) {
      frontier = appendLeaves(frontier, [leaf]).frontier;
      expect(frontier.size).toBe(seq + 1);
      expect(frontierRoot(frontier).equals(treeHead(leaves.slice(0, seq + 1))), `size ${seq + 1}`).toBe(true);
    }
  });

  it('has the RFC 6962 root at larger sizes, however the leaves were batched and the frontier stored between', () => {
    const leaves = createLeaves(3000);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 700 }), { minLength: 1, maxLength: 4 }), (batches) => {
        let frontier = EMPTY_FRONTIER;
        for (const count of batches) {
          const appended = appendLeaves(
            frontier,
            leaves.slice(frontier.size, frontier.size + count),
          ).frontier;
          frontier = decodeFrontier(encodeFrontier(appended)) ?? EMPTY_FRONTIER;
          expect(frontier).toEqual(appended);
        }
        expect(frontierRoot(frontier)).toEqual(treeHead(leaves.slice(0, frontier.size)));
      }),
      { numRuns: 40 },
    );
  });

  it('tells each whole block of 256 and 65,536 leaves once, with its root', () => {
    const leaves = Array.from({ length: 65_536 + 300 }, (_, i) => {
      const leaf = Buffer.alloc(32);
      leaf.writeUInt32BE(i);
      return leaf;
    });
    const start = appendLeaves(EMPTY_FRONTIER, leaves.slice(0, 255));
    expect(start.completed).toEqual([]);
    const { completed } = appendLeaves(start.frontier, leaves.slice(255));
    const blocks = completed.filter(({ level }) => level === 1);
    expect(blocks.map(({ index }) => index)).toEqual(Array.from({ length: 257 }, (_, i) => i));
    for (const index of [0, 1, 255, 256]) {
      expect(blocks[index]?.hash).toEqual(treeHead(leaves.slice(index * 256, index * 256 + 256)));
    }
    const large = completed.filter(({ level }) => level !== 1);
    expect(large).toEqual([{ level: 2, index: 0, hash: treeHead(leaves.slice(0, 65_536)) }]);
  });

  it('leaves the frontier it grew from as it was', () => {
    const { frontier } = appendLeaves(EMPTY_FRONTIER, createLeaves(7));
    const before = encodeFrontier(frontier);
    appendLeaves(frontier, createLeaves(9, 7));
    expect(encodeFrontier(frontier)).toBe(before);
  });

  it('counts past 2^32', () => {
    const size = 2 ** 40 + 2 ** 33 - 1;
    const hashes = createLeaves(34);
    const { frontier, completed } = appendLeaves({ size, hashes }, createLeaves(1, 99));
    expect([frontier.size, frontier.hashes.length]).toEqual([size + 1, 2]);
    expect(completed.map(({ level, index }) => [level, index])).toEqual(
      [1, 2, 3, 4].map((level) => [level, (size + 1) / 256 ** level - 1]),
    );
    expect(decodeFrontier(encodeFrontier(frontier))).toEqual(frontier);
  });

  it('does not decode what is not one', () => {
    const text = encodeFrontier(appendLeaves(EMPTY_FRONTIER, createLeaves(3)).frontier);
    expect(decodeFrontier('0:')).toEqual(EMPTY_FRONTIER);
    const [size = '', hashes = ''] = text.split(':');
    const bad = [
      '',
      ':',
      `3:${hashes.slice(4)}`,
      `03:${hashes}`,
      `4:${hashes}`,
      `7:${hashes}`,
      `${text}\n`,
      `${size}:${hashes.slice(0, -1)}`,
      `9007199254740993:${hashes}`,
    ];
    for (const each of bad) expect(decodeFrontier(each), each).toBeNull();
  });

  it('refuses to grow from hashes that its size does not have', () => {
    expect(() => appendLeaves({ size: 3, hashes: createLeaves(1) }, createLeaves(1))).toThrow(RangeError);
  });
});
