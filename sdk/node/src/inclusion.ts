import { createHash } from 'node:crypto';

/** Verifies inclusion and consistency proofs: RFC 6962 hashes, RFC 9162 sections 2.1.3.2 and 2.1.4.2. */

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

/** Uses arithmetic and no bitwise operators, because a log can have more than 2^32 entries. */
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
      // At the right edge, a node without a sibling moves up to a level where it has one.
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

function isPowerOfTwo(n: number): boolean {
  let rest = n;
  while (rest % 2 === 0) rest /= 2;
  return rest === 1;
}

export interface Tree {
  readonly size: number;
  readonly root: Buffer;
}

/** True if the newer tree begins with all entries of the older one, which has at least one. */
export function isExtension(older: Tree, newer: Tree, proof: readonly Uint8Array[]): boolean {
  if (older.size >= newer.size)
    return older.size === newer.size && proof.length === 0 && older.root.equals(newer.root);
  // The proof leaves out the first hash if the older tree is a complete subtree: it is the older root.
  const [start, ...rest] = isPowerOfTwo(older.size) && proof.length > 0 ? [older.root, ...proof] : proof;
  if (start === undefined) return false;
  let node = older.size - 1;
  let last = newer.size - 1;
  const rise = (): void => {
    node = half(node);
    last = half(last);
  };
  while (isOdd(node)) rise();
  let before: Uint8Array = start;
  let after: Uint8Array = start;
  for (const sibling of rest) {
    if (last === 0) return false;
    if (isOdd(node) || node === last) {
      before = digest(NODE, sibling, before);
      after = digest(NODE, sibling, after);
      while (!isOdd(node) && node !== 0) rise();
    } else {
      after = digest(NODE, after, sibling);
    }
    rise();
  }
  return last === 0 && older.root.equals(before) && newer.root.equals(after);
}
