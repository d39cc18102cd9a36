import { z } from 'zod';
import {
  type CommitmentOpening,
  commitBody,
  commitSubject,
  IMPERSONAL_TYPES,
  PERSONAL_TYPES,
} from '../../src/ledger/entries.ts';
import { HASH_BYTES, leafHash, nodeHash } from '../../src/ledger/merkle.ts';
import {
  type CheckpointRefusal,
  parseDecimal,
  parseHash,
  parseVkey,
  verifyCheckpoint,
} from '../../src/ledger/note.ts';
import { TILE_WIDTH } from '../../src/ledger/tiles.ts';
import { decodeBase64, decodeBase64Url } from '../../src/lib/crypto.ts';
import { canonicalJson, type Json } from '../../src/lib/json.ts';

/**
 * The checks of an auditor on entries and proofs of a log. gpd
 * only creates proofs, so this shares no code with their creation.
 */

const half = (n: number): number => Math.floor(n / 2);
const isOdd = (n: number): boolean => n % 2 === 1;

/**
 * Implements RFC 9162 section 2.1.3.2, with arithmetic instead
 * of bitwise operators, because sizes can exceed 2^32.
 * @returns false for anything that is not a valid proof; it does not throw
 */
export function verifyInclusion(
  index: number,
  size: number,
  leaf: Uint8Array,
  proof: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(size) || index < 0 || index >= size) return false;
  if (![leaf, ...proof].every(({ length }) => length === HASH_BYTES)) return false;
  let [node, last] = [index, size - 1];
  let hash = leaf;
  for (const sibling of proof) {
    if (last === 0) return false;
    if (isOdd(node) || node === last) {
      hash = nodeHash(sibling, hash);
      // At the right edge, levels without a sibling are skipped.
      while (!isOdd(node) && node !== 0) [node, last] = [half(node), half(last)];
    } else {
      hash = nodeHash(hash, sibling);
    }
    [node, last] = [half(node), half(last)];
  }
  return last === 0 && Buffer.from(hash).equals(root);
}

/** @returns null unless the bytes are 1 to 256 entries, each after its length as a big-endian uint16 */
export function decodeEntryBundle(bytes: Buffer): Buffer[] | null {
  const entries: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (at + 2 > bytes.length) return null;
    const start = at + 2;
    at = start + bytes.readUInt16BE(at);
    if (at > bytes.length) return null;
    entries.push(bytes.subarray(start, at));
  }
  return entries.length >= 1 && entries.length <= TILE_WIDTH ? entries : null;
}

const common = {
  v: z.literal(1),
  time: z.iso.datetime({ precision: 0 }),
  purpose: z.string().nullable(),
};

const commitment = z.string().refine((text) => decodeBase64Url(text)?.length === HASH_BYTES);

const entrySchema = z.union([
  z.strictObject({ ...common, type: z.enum(PERSONAL_TYPES), subject: commitment, body: commitment }),
  z.strictObject({ ...common, type: z.enum(IMPERSONAL_TYPES), body: z.record(z.string(), z.json()) }),
]);

/** @returns null unless the bytes are an entry in the canonical form of RFC 8785, in which it was hashed */
export function parseEntry(bytes: Uint8Array): z.infer<typeof entrySchema> | null {
  try {
    const value = JSON.parse(Buffer.from(bytes).toString()) as Json;
    if (!Buffer.from(canonicalJson(value)).equals(bytes)) return null;
    return entrySchema.safeParse(value).data ?? null;
  } catch {
    return null;
  }
}

/** @returns true if the entry commits to this key, salt, principal and detail */
export function openPersonalEntry(bytes: Uint8Array, opening: CommitmentOpening): boolean {
  const entry = parseEntry(bytes);
  if (entry === null || !('subject' in entry)) return false;
  return entry.subject === commitSubject(opening) && entry.body === commitBody(opening);
}

/** @returns null unless the text is a proof with its entry in `extra` */
function parseTlogProof(text: string) {
  const gap = text.indexOf('\n\n');
  if (gap === -1) return null;
  const [first, extra, position, ...path] = text.slice(0, gap).split('\n');
  if (first !== 'c2sp.org/tlog-proof@v1') return null;
  if (!extra?.startsWith('extra ') || !position?.startsWith('index ')) return null;
  const entry = decodeBase64(extra.slice('extra '.length));
  const index = parseDecimal(position.slice('index '.length));
  const hashes = path.map(parseHash);
  if (entry === null || index === null || hashes.includes(null)) return null;
  return { entry, index, hashes: hashes.filter((hash) => hash !== null), checkpoint: text.slice(gap + 2) };
}

type Refusal = 'malformed-key' | 'malformed-proof' | 'not-included' | CheckpointRefusal;
const refuse = (reason: Refusal) => ({ ok: false, why: reason }) as const;

/** @param vkey the trusted verifier key of the log, which did not come with the proof */
export function verifyTlogProof(text: string, vkey: string) {
  const key = parseVkey(vkey);
  if (key === null) return refuse('malformed-key');
  const proof = parseTlogProof(text);
  if (proof === null) return refuse('malformed-proof');
  const signed = verifyCheckpoint(proof.checkpoint, key);
  if (!signed.ok) return signed;
  const { entry, index, hashes } = proof;
  const { origin, size, root } = signed.checkpoint;
  const leaf = leafHash(entry);
  if (!verifyInclusion(index, size, leaf, hashes, root)) return refuse('not-included');
  return { ok: true, entry, index, leafHash: leaf, origin, size, root } as const;
}
