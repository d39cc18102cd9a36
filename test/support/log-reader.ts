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

/** What an auditor does with what a log hands out; gpd itself only makes it. */

const half = (n: number): number => Math.floor(n / 2);
const isOdd = (n: number): boolean => n % 2 === 1;

/**
 * RFC 9162 section 2.1.3.2, which shares nothing with the making of proofs. Arithmetic, not bitwise operators: sizes pass
 * 2^32. False for anything that is not a proof; never a throw.
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
      // At the right edge a hash may skip levels on which its node has no sibling.
      while (!isOdd(node) && node !== 0) [node, last] = [half(node), half(last)];
    } else {
      hash = nodeHash(hash, sibling);
    }
    [node, last] = [half(node), half(last)];
  }
  return last === 0 && Buffer.from(hash).equals(root);
}

/** Null when the bytes are not whole entries, 1 to 256 of them, each behind its length as a big-endian uint16. */
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

/** Null unless the bytes are an entry, in the one form that RFC 8785 gives it: what parses is what was hashed. */
export function parseEntry(bytes: Uint8Array): z.infer<typeof entrySchema> | null {
  try {
    const value = JSON.parse(Buffer.from(bytes).toString()) as Json;
    if (!Buffer.from(canonicalJson(value)).equals(bytes)) return null;
    return entrySchema.safeParse(value).data ?? null;
  } catch {
    return null;
  }
}

/** True when this key, salt, principal and detail are the ones that the entry was made of. */
export function openPersonalEntry(bytes: Uint8Array, opening: CommitmentOpening): boolean {
  const entry = parseEntry(bytes);
  if (entry === null || !('subject' in entry)) return false;
  return entry.subject === commitSubject(opening) && entry.body === commitBody(opening);
}

/** Null unless it is a proof with its entry in `extra`. */
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
const refused = (why: Refusal) => ({ ok: false, why }) as const;

/** @param vkey the log's verifier key, got by another way than the proof and trusted */
export function verifyTlogProof(text: string, vkey: string) {
  const key = parseVkey(vkey);
  if (key === null) return refused('malformed-key');
  const proof = parseTlogProof(text);
  if (proof === null) return refused('malformed-proof');
  const signed = verifyCheckpoint(proof.checkpoint, key);
  if (!signed.ok) return signed;
  const { entry, index, hashes } = proof;
  const { origin, size, root } = signed.checkpoint;
  const leaf = leafHash(entry);
  if (!verifyInclusion(index, size, leaf, hashes, root)) return refused('not-included');
  return { ok: true, entry, index, leafHash: leaf, origin, size, root } as const;
}
