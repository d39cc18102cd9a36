/** The shape of the RFC 6962 tree: which runs of leaves a proof names, and the perfect subtrees they are made of. */

/** The leaves start..end-1. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** The 2^height leaves from index * 2^height on. */
export interface PerfectSubtree {
  readonly height: number;
  readonly index: number;
}

/** Where RFC 6962 parts a tree of two leaves or more: after the largest power of two smaller than its size. */
function splitOf({ start, end }: Range): number {
  let left = 1;
  while (left * 2 < end - start) left *= 2;
  return start + left;
}

/** PATH(index, D[0:size]) of RFC 6962 section 2.1.1: the runs under the hashes of the proof, leaf's sibling first. */
export function inclusionRanges(index: number, size: number): readonly Range[] {
  const siblings: Range[] = [];
  for (let within: Range = { start: 0, end: size }; within.end - within.start > 1; ) {
    const split = splitOf(within);
    const [left, right] = [
      { start: within.start, end: split },
      { start: split, end: within.end },
    ];
    siblings.push(index < split ? right : left);
    within = index < split ? left : right;
  }
  return siblings.reverse();
}

/**
 * PROOF(size1, D[0:size2]) of RFC 6962 section 2.1.2, in the order of the proof. The old root itself is left out when
 * it is a whole subtree of the new tree: the verifier has it.
 */
export function consistencyRanges(size1: number, size2: number): readonly Range[] {
  const ranges: Range[] = [];
  let within: Range = { start: 0, end: size2 };
  while (within.end > size1) {
    const split = splitOf(within);
    const [left, right] = [
      { start: within.start, end: split },
      { start: split, end: within.end },
    ];
    ranges.push(size1 <= split ? right : left);
    within = size1 <= split ? left : right;
  }
  if (within.start > 0) ranges.push(within);
  return ranges.reverse();
}

/** Left to right, so largest first. Holds for the ranges of this file, which start at a multiple of their largest part. */
export function perfectSubtrees({ start, end }: Range): readonly PerfectSubtree[] {
  const parts: PerfectSubtree[] = [];
  for (let from = start; from < end; ) {
    let leaves = 1;
    let height = 0;
    while (leaves * 2 <= end - from) {
      leaves *= 2;
      height += 1;
    }
    parts.push({ height, index: from / leaves });
    from += leaves;
  }
  return parts;
}
