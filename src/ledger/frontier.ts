import { decodeBase64 } from '../lib/base64.ts';
import { EMPTY_ROOT, HASH_BYTES, nodeHash } from './merkle.ts';
import { TILE_HEIGHT } from './tile-path.ts';

/**
 * All that an appender needs of the log: the roots of the perfect subtrees that `size` decomposes into, largest (so
 * leftmost) first. There are as many as `size` has one bits.
 */
export interface Frontier {
  readonly size: number;
  readonly hashes: readonly Buffer[];
}

export const EMPTY_FRONTIER: Frontier = { size: 0, hashes: [] };

/**
 * @param leaves leaf hashes (not entries) in the order of their seq, the first of which is `frontier.size`
 * @returns `completed`: the roots of subtrees of 256^level leaves, whose leaves start at seq `index` * 256^level, level 1 or more;
 * in the order of completion, each is written once and never changes
 */
export function appendLeaves(frontier: Frontier, leaves: readonly Buffer[]) {
  const hashes = [...frontier.hashes];
  const completed: { readonly level: number; readonly index: number; readonly hash: Buffer }[] = [];
  let size = frontier.size;
  for (const leaf of leaves) {
    size += 1;
    let root = leaf;
    // Sizes pass 2^32, where the bitwise operators of JavaScript end.
    for (let count = size, height = 1; count % 2 === 0; count /= 2, height += 1) {
      const left = hashes.pop();
      if (left === undefined) throw new RangeError('the frontier has fewer hashes than its size asks for');
      root = nodeHash(left, root);
      if (height % TILE_HEIGHT === 0) {
        completed.push({ level: height / TILE_HEIGHT, index: count / 2 - 1, hash: root });
      }
    }
    hashes.push(root);
  }
  return { frontier: { size, hashes }, completed };
}

export function frontierRoot(frontier: Frontier): Buffer {
  const root = frontier.hashes.reduceRight<Buffer | null>(
    (right, left) => (right === null ? left : nodeHash(left, right)),
    null,
  );
  return root ?? EMPTY_ROOT;
}

/** `<size>:<base64 of the hashes, one after another>`, for the head row of a log. */
export function encodeFrontier(frontier: Frontier): string {
  return `${frontier.size}:${Buffer.concat(frontier.hashes).toString('base64')}`;
}

const oneBits = (size: number): number => size.toString(2).replaceAll('0', '').length;

/** Null for anything that `encodeFrontier` does not write: an altered head row must not become a second log. */
export function decodeFrontier(text: string): Frontier | null {
  const [, digits, base64] = /^(0|[1-9]\d*):(.*)$/s.exec(text) ?? [];
  if (digits === undefined || base64 === undefined) return null;
  const size = Number(digits);
  const bytes = decodeBase64(base64);
  if (!Number.isSafeInteger(size) || bytes?.length !== oneBits(size) * HASH_BYTES) return null;
  const hashes = Array.from({ length: bytes.length / HASH_BYTES }, (_, i) =>
    bytes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES),
  );
  return { size, hashes };
}
