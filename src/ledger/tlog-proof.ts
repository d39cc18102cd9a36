import { decodeBase64 } from '../lib/base64.ts';
import { type CheckpointRefusal, parseDecimal, parseHash, verifyCheckpoint } from './checkpoint.ts';
import { leafHash } from './merkle.ts';
import { verifyInclusion } from './verify.ts';
import { parseVkey } from './vkey.ts';

/**
 * c2sp.org/tlog-proof@v1: all that is needed to check one entry offline. The format holds `extra` to be opaque and not
 * authenticated; here it is the entry itself, which the proof does cover.
 */

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';

export interface TlogProof {
  readonly entry: Buffer;
  /** The seq of the entry. */
  readonly index: number;
  /** Audit path, the leaf's sibling first. */
  readonly hashes: readonly Buffer[];
  /** The signed note, verbatim. */
  readonly checkpoint: string;
}

export interface ProvenEntry {
  readonly ok: true;
  readonly entry: Buffer;
  readonly index: number;
  readonly leafHash: Buffer;
  /** Of the checkpoint that the entry is in. */
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
}

export type TlogProofRefusal = 'malformed-key' | 'malformed-proof' | 'not-included' | CheckpointRefusal;

export type TlogProofResult = ProvenEntry | { readonly ok: false; readonly why: TlogProofRefusal };

export function formatTlogProof({ entry, index, hashes, checkpoint }: TlogProof): string {
  const path = hashes.map((hash) => hash.toString('base64'));
  const lines = [FIRST_LINE, `extra ${entry.toString('base64')}`, `index ${index}`, ...path];
  return `${lines.join('\n')}\n\n${checkpoint}`;
}

/** Null unless it is a proof with its entry in `extra`. The checkpoint is taken as it is: `verifyCheckpoint` reads it. */
export function parseTlogProof(text: string): TlogProof | null {
  const gap = text.indexOf('\n\n');
  if (gap === -1) return null;
  const [first, extra, position, ...path] = text.slice(0, gap).split('\n');
  if (first !== FIRST_LINE || !extra?.startsWith('extra ') || !position?.startsWith('index ')) return null;
  const entry = decodeBase64(extra.slice('extra '.length));
  const index = parseDecimal(position.slice('index '.length));
  const hashes = path.map(parseHash);
  if (entry === null || index === null || hashes.includes(null)) return null;
  return { entry, index, hashes: hashes.filter((hash) => hash !== null), checkpoint: text.slice(gap + 2) };
}

/** @param vkey the log's verifier key, got by another way than the proof and trusted */
export function verifyTlogProof(text: string, vkey: string): TlogProofResult {
  const key = parseVkey(vkey);
  if (key === null) return { ok: false, why: 'malformed-key' };
  const proof = parseTlogProof(text);
  if (proof === null) return { ok: false, why: 'malformed-proof' };
  const signed = verifyCheckpoint(proof.checkpoint, key);
  if (!signed.ok) return signed;
  const { entry, index, hashes } = proof;
  const { origin, size, root } = signed.checkpoint;
  const leaf = leafHash(entry);
  if (!verifyInclusion(index, size, leaf, hashes, root)) return { ok: false, why: 'not-included' };
  return { ok: true, entry, index, leafHash: leaf, origin, size, root };
}
