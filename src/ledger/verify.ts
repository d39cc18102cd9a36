import { equalBytes } from '../lib/crypto.ts';
import { HASH_BYTES, nodeHash } from './merkle.ts';

/** Verifies consistency proofs (RFC 9162 section 2.1.4.2). */

const half = (n: number): number => Math.floor(n / 2);
const isOdd = (n: number): boolean => n % 2 === 1;

function isPowerOfTwo(n: number): boolean {
  let rest = n;
  while (rest % 2 === 0) rest /= 2;
  return rest === 1;
}

/** The two roots to which a consistency proof leads; null: invalid. */
function consistencyRoots(
  size1: number,
  size2: number,
  proof: readonly Uint8Array[],
  root1: Uint8Array,
): { readonly older: Uint8Array; readonly newer: Uint8Array } | null {
  const [first, ...rest] = isPowerOfTwo(size1) && proof.length > 0 ? [root1, ...proof] : proof;
  if (![first, ...rest].every((hash) => hash?.length === HASH_BYTES)) return null;
  // A node of the path and the last node of the tree, both at the current level.
  let [node, last] = [size1 - 1, size2 - 1];
  const rise = (): void => {
    [node, last] = [half(node), half(last)];
  };
  while (isOdd(node)) rise();
  let older = first as Uint8Array;
  let newer = older;
  for (const sibling of rest) {
    if (last === 0) return null;
    if (isOdd(node) || node === last) {
      older = nodeHash(sibling, older);
      newer = nodeHash(sibling, newer);
      // At the right edge a hash may skip levels where its node has no sibling.
      while (!isOdd(node) && node !== 0) rise();
    } else {
      newer = nodeHash(newer, sibling);
    }
    rise();
  }
  return last === 0 ? { older, newer } : null;
}

/**
 * Verifies by RFC 9162 section 2.1.4.2, in code that shares nothing with making proofs. It uses arithmetic
 * because sizes exceed 2^32. Returns false for anything that is not a proof and never throws. `size1` = 0 is
 * refused: every log extends the empty one.
 */
export function verifyConsistency(
  size1: number,
  size2: number,
  proof: readonly Uint8Array[],
  root1: Uint8Array,
  root2: Uint8Array,
): boolean {
  if (!Number.isSafeInteger(size1) || !Number.isSafeInteger(size2) || size1 < 1 || size1 > size2)
    return false;
  if (size1 === size2) return proof.length === 0 && equalBytes(root1, root2);
  const roots = consistencyRoots(size1, size2, proof, root1);
  return roots !== null && equalBytes(roots.older, root1) && equalBytes(roots.newer, root2);
}
