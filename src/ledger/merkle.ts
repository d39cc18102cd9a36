import { hash } from 'node:crypto';
import { decodeBase64 } from '../lib/crypto.ts';
import { type SeqRange, TILE_HEIGHT, TILE_WIDTH } from './tiles.ts';

/** Hashes and proofs of RFC 6962 section 2.1 with SHA-256. The first byte tells leaves from nodes. */

export const HASH_BYTES = 32;
const LEAF = Buffer.from([0x00]);
const NODE = Buffer.from([0x01]);

/** The root of a log without entries: SHA-256 of nothing. */
export const EMPTY_ROOT: Buffer = hash('sha256', '', 'buffer');

export function leafHash(entry: Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([LEAF, entry]), 'buffer');
}

export function nodeHash(leftHash: Uint8Array, rightHash: Uint8Array): Buffer {
  return hash('sha256', Buffer.concat([NODE, leftHash, rightHash]), 'buffer');
}

/**
 * The part of a tree that an appender needs: the roots of the perfect subtrees of `size`, largest (so
 * leftmost) first. There are as many as `size` has one bits.
 */
export interface Frontier {
  readonly size: number;
  readonly hashes: readonly Buffer[];
}

export const EMPTY_FRONTIER: Frontier = { size: 0, hashes: [] };

/**
 * @param leaves leaf hashes (not entries) in the order of their seq; the first has seq `frontier.size`
 * @returns `completed`: roots of subtrees of 256^level leaves that start at seq `index` * 256^level, for
 * level 1 or more; in the order of completion, and never changed later
 */
export function appendLeaves(frontier: Frontier, leaves: readonly Buffer[]) {
  const hashes = [...frontier.hashes];
  const completed: { readonly level: number; readonly index: number; readonly hash: Buffer }[] = [];
  let size = frontier.size;
  for (const leaf of leaves) {
    size += 1;
    let root = leaf;
    // Sizes exceed 2^32, where JavaScript's bitwise operators end.
    for (let count = size, height = 1; count % 2 === 0; count /= 2, height += 1) {
      const sibling = hashes.pop();
      if (sibling === undefined) throw new RangeError('the frontier has fewer hashes than its size asks for');
      root = nodeHash(sibling, root);
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
    (rightRoot, leftRoot) => (rightRoot === null ? leftRoot : nodeHash(leftRoot, rightRoot)),
    null,
  );
  return root ?? EMPTY_ROOT;
}

/** `<size>:<base64 of the hashes, one after another>`, for the head row of a log. */
export function encodeFrontier(frontier: Frontier): string {
  return `${frontier.size}:${Buffer.concat(frontier.hashes).toString('base64')}`;
}

const oneBits = (size: number): number => size.toString(2).replaceAll('0', '').length;

/** Null for text that `encodeFrontier` does not write: an altered head row must not become a second log. */
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

/**
 * Reads the stored hashes of one log. Level 0: leaf hashes by seq; level L: roots of blocks of 256^L leaves,
 * by block. Only hashes below the requested size are read, so a log may grow meanwhile.
 */
export interface HashReader {
  /** The hashes start..end-1 of a level, all within one tile of 256. */
  read(tileLevel: number, start: number, end: number): Promise<readonly Buffer[]>;
}

/** Splits a tree of two leaves or more after the largest power of two smaller than its size (RFC 6962). */
function halvesOf({ start, end }: SeqRange): readonly [left: SeqRange, right: SeqRange] {
  let leftSize = 1;
  while (leftSize * 2 < end - start) leftSize *= 2;
  const split = start + leftSize;
  return [
    { start, end: split },
    { start: split, end },
  ];
}

/** Walks down to a part with this leaf. Returns it with the siblings on the way, its own first. */
function descend(leaf: number, size: number, isTarget: (part: SeqRange) => boolean) {
  const siblings: SeqRange[] = [];
  let part: SeqRange = { start: 0, end: size };
  while (!isTarget(part)) {
    const [leftHalf, rightHalf] = halvesOf(part);
    const isLeft = leaf < leftHalf.end;
    siblings.push(isLeft ? rightHalf : leftHalf);
    part = isLeft ? leftHalf : rightHalf;
  }
  return { part, siblings: siblings.reverse() };
}

/** PATH(index, D[0:size]) of RFC 6962 section 2.1.1 as ranges of leaves, the leaf's sibling first. */
const inclusionRanges = (index: number, size: number): readonly SeqRange[] =>
  descend(index, size, ({ start, end }) => end - start === 1).siblings;

/**
 * PROOF(size1, D[0:size2]) of RFC 6962 section 2.1.2, in the order of the proof. It omits the old root if
 * that is a whole subtree of the new tree: the verifier has it.
 */
function consistencyRanges(size1: number, size2: number): readonly SeqRange[] {
  const { part, siblings } = descend(size1 - 1, size2, ({ end }) => end <= size1);
  return part.start > 0 ? [part, ...siblings] : siblings;
}

/** Stored hashes of one tile that together form a perfect subtree: 2^0 to 2^7 of them. */
interface Run extends SeqRange {
  readonly level: number;
}

/**
 * The perfect subtrees of a range, left to right and so largest first. Correct for ranges of this file, which
 * start at a multiple of their largest part.
 */
function runsOf({ start, end }: SeqRange): readonly Run[] {
  const runs: Run[] = [];
  for (let from = start; from < end; ) {
    let leaves = 1;
    let height = 0;
    while (leaves * 2 <= end - from) {
      leaves *= 2;
      height += 1;
    }
    const [width, index] = [2 ** (height % TILE_HEIGHT), from / leaves];
    runs.push({ level: Math.floor(height / TILE_HEIGHT), start: index * width, end: (index + 1) * width });
    from += leaves;
  }
  return runs;
}

const tileOf = ({ level, start }: Run): string => `${level}/${Math.floor(start / TILE_WIDTH)}`;

/**
 * One range per tile, from the first hash needed to the last. A proof needs two tiles per level: one for its
 * path, one for the edge.
 */
function stretchesOf(runs: readonly Run[]): ReadonlyMap<string, Run> {
  const stretches = new Map<string, Run>();
  for (const run of runs) {
    const { start, end } = stretches.get(tileOf(run)) ?? run;
    stretches.set(tileOf(run), { ...run, start: Math.min(start, run.start), end: Math.max(end, run.end) });
  }
  return stretches;
}

/** Reads the hashes of a tile from `start` on in one call. */
async function readStretch({ level, start, end }: Run, reader: HashReader) {
  const hashes = await reader.read(level, start, end);
  if (hashes.length !== end - start)
    throw new Error(`the log lacks hashes ${start}..${end - 1} of level ${level}`);
  return { start, hashes };
}

async function readTiles(runs: readonly Run[], reader: HashReader) {
  const stretches = [...stretchesOf(runs)];
  return new Map(
    await Promise.all(stretches.map(async ([tile, run]) => [tile, await readStretch(run, reader)] as const)),
  );
}

function perfectRoot(hashes: readonly Buffer[]): Buffer {
  const [first, second] = hashes;
  if (first === undefined) throw new RangeError('no hashes');
  if (second === undefined) return first;
  const half = hashes.length / 2;
  return nodeHash(perfectRoot(hashes.slice(0, half)), perfectRoot(hashes.slice(half)));
}

async function hashRanges(ranges: readonly SeqRange[], reader: HashReader): Promise<Buffer[]> {
  const runs = ranges.map(runsOf);
  const tiles = await readTiles(runs.flat(), reader);
  const rootOf = (run: Run): Buffer => {
    const { start, hashes } = tiles.get(tileOf(run)) ?? { start: 0, hashes: [] };
    return perfectRoot(hashes.slice(run.start - start, run.end - start));
  };
  return runs.map((parts) =>
    parts.map(rootOf).reduceRight((rightRoot, leftRoot) => nodeHash(leftRoot, rightRoot)),
  );
}

const isSize = (size: number): boolean => Number.isSafeInteger(size) && size >= 0;

/**
 * The audit path of RFC 6962 section 2.1.1, leaf's sibling first.
 * @throws {RangeError} when `index` is not in a log of `size`
 */
export async function inclusionProof(index: number, size: number, reader: HashReader): Promise<Buffer[]> {
  if (!isSize(index) || !isSize(size) || index >= size)
    throw new RangeError('no such leaf in a log of this size');
  return hashRanges(inclusionRanges(index, size), reader);
}

/**
 * RFC 6962 section 2.1.2; empty for equal sizes.
 * @throws {RangeError} for `size1` = 0, which proves nothing, and for `size1` > `size2`
 */
export async function consistencyProof(size1: number, size2: number, reader: HashReader): Promise<Buffer[]> {
  if (!isSize(size1) || !isSize(size2) || size1 < 1 || size1 > size2)
    throw new RangeError('1 <= size1 <= size2');
  return hashRanges(consistencyRanges(size1, size2), reader);
}

/** The root of the first `size` leaves, from stored hashes. */
export async function rootAt(size: number, reader: HashReader): Promise<Buffer> {
  if (!isSize(size)) throw new RangeError('not a size');
  const [root] = size === 0 ? [EMPTY_ROOT] : await hashRanges([{ start: 0, end: size }], reader);
  return root ?? EMPTY_ROOT;
}
