import { equalBytes } from '../lib/hash.ts';
import { HASH_BYTES, nodeHash } from './merkle.ts';

/**
 * Checks of proofs by the algorithms of RFC 9162 sections 2.1.3.2 and 2.1.4.2, which share nothing with the making of
 * proofs. Arithmetic, not bitwise operators: sizes pass 2^32. False for anything that is not a proof; never a throw.
 */

const half = (n: number): number => Math.floor(n / 2);
const isOdd = (n: number): boolean => n % 2 === 1;
const areHashes = (hashes: readonly Uint8Array[]): boolean =>
  hashes.every(({ length }) => length === HASH_BYTES);

/** A node of the path and the last node of the tree, both at the level reached. */
interface Position {
  readonly node: number;
  readonly last: number;
}

const parentOf = ({ node, last }: Position): Position => ({ node: half(node), last: half(last) });

/** At the right edge a hash may skip levels on which its node has no sibling. */
function withSibling(position: Position): Position {
  let at = position;
  while (!isOdd(at.node) && at.node !== 0) at = parentOf(at);
  return at;
}

const isRightChild = ({ node, last }: Position): boolean => isOdd(node) || node === last;

export function verifyInclusion(
  index: number,
  size: number,
  leaf: Uint8Array,
  proof: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(size)) return false;
  if (index < 0 || index >= size || !areHashes([leaf, ...proof])) return false;
  let at: Position = { node: index, last: size - 1 };
  let hash = leaf;
  for (const sibling of proof) {
    if (at.last === 0) return false;
    if (isRightChild(at)) {
      hash = nodeHash(sibling, hash);
      at = withSibling(at);
    } else {
      hash = nodeHash(hash, sibling);
    }
    at = parentOf(at);
  }
  return at.last === 0 && equalBytes(hash, root);
}

function isPowerOfTwo(n: number): boolean {
  let rest = n;
  while (rest % 2 === 0) rest /= 2;
  return rest === 1;
}

/** `size1` = 0 is refused: every log extends the empty one, so such a proof says nothing. */
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
  const [first, ...rest] = isPowerOfTwo(size1) && proof.length > 0 ? [root1, ...proof] : proof;
  if (first === undefined || !areHashes([first, ...rest])) return false;
  let at: Position = { node: size1 - 1, last: size2 - 1 };
  while (isOdd(at.node)) at = parentOf(at);
  let older = first;
  let newer = first;
  for (const sibling of rest) {
    if (at.last === 0) return false;
    if (isRightChild(at)) {
      older = nodeHash(sibling, older);
      newer = nodeHash(sibling, newer);
      at = withSibling(at);
    } else {
      newer = nodeHash(newer, sibling);
    }
    at = parentOf(at);
  }
  return at.last === 0 && equalBytes(older, root1) && equalBytes(newer, root2);
}
