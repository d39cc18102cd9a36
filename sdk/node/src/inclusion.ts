import { createHash } from 'node:crypto';

/** RFC 6962 hashes, and RFC 9162 section 2.1.3.2. */

const digest = (...parts: readonly Uint8Array[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

export const leafHash = (entry: Uint8Array): Buffer => digest(LEAF, entry);

const half = (n: number): number => Math.floor(n / 2);
const isOdd = (n: number): boolean => n % 2 === 1;

/** Arithmetic, not bitwise operators: a log may pass 2^32 entries. */
export function isIncluded(
  index: number,
  size: number,
  leaf: Uint8Array,
  path: readonly Uint8Array[],
  root: Buffer,
): boolean {
  if (index >= size) return false;
  let node = index;
  let last = size - 1;
  let hash = leaf;
  for (const sibling of path) {
    if (last === 0) return false;
    if (isOdd(node) || node === last) {
      hash = digest(NODE, sibling, hash);
      // At the right edge a node without a sibling rises to where it has one.
      while (!isOdd(node) && node !== 0) {
        node = half(node);
        last = half(last);
      }
    } else {
      hash = digest(NODE, hash, sibling);
    }
    node = half(node);
    last = half(last);
  }
  return last === 0 && root.equals(hash);
}
