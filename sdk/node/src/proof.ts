import { decodeBase64, parseDecimal } from './base64.ts';
import { isRecord, type JsonRecord, parseJson } from './body.ts';
import { ConsentError } from './errors.ts';
import { isExtension, isIncluded, leafHash } from './inclusion.ts';
import {
  cosignedAt,
  isSignedBy,
  parseNote,
  parseVkey,
  parseWitnessKey,
  type SignedNote,
  type VerifierKey,
} from './note.ts';

/** Verifies proofs of entries offline: c2sp.org/tlog-proof@v1 with the entry (SPEC.md section 6). */

export interface ProofExpectations {
  /** The log's verifier key, which you got once independently of the proof, and store. */
  readonly vkey: string;
  /** From the decision's `proof`. Without them, a valid proof of another entry passes. */
  readonly seq?: number | undefined;
  readonly hash?: string | undefined;
  /** Such as `consent.granted`. */
  readonly type?: string | undefined;
  readonly purpose?: string | undefined;
  /** Verifier keys of witnesses that you trust, pinned like `vkey`; without them no witness is required. */
  readonly witnesses?: readonly string[] | undefined;
  /** The required number of cosignatures; by default all. */
  readonly minWitnesses?: number | undefined;
}

export interface Cosigner {
  readonly name: string;
  /** Epoch seconds; then it knew no larger tree of the log. */
  readonly time: number;
}

export interface ProvenEntry {
  readonly seq: number;
  readonly hash: string;
  /** The entry itself; `subject` and `body` of a personal one are commitments. */
  readonly entry: Readonly<Record<string, unknown>> & { readonly type: string };
  /** The log's name. */
  readonly origin: string;
  /** Size of the log that the checkpoint signs. */
  readonly size: number;
  readonly root: string;
  /** The `witnesses` that have cosigned. */
  readonly witnesses: readonly Cosigner[];
}

const MAX_PATH = 63;

const refusal = (code: string): ConsentError => new ConsentError('verifyProof', 'proof', { code });

interface Parsed {
  readonly entry: Buffer;
  readonly index: number;
  readonly path: readonly Buffer[];
  readonly checkpoint: string;
}

function parseHash(text: string): Buffer | null {
  const bytes = decodeBase64(text);
  return bytes?.length === 32 ? bytes : null;
}

function parse(text: string): Parsed | null {
  const gap = text.indexOf('\n\n');
  if (gap === -1) return null;
  const [first, extra, position, ...lines] = text.slice(0, gap).split('\n');
  if (first !== 'c2sp.org/tlog-proof@v1' || lines.length > MAX_PATH) return null;
  if (!extra?.startsWith('extra ') || !position?.startsWith('index ')) return null;
  const entry = decodeBase64(extra.slice('extra '.length));
  const index = parseDecimal(position.slice('index '.length));
  const path = lines.map(parseHash).filter((hash) => hash !== null);
  if (entry === null || index === null || path.length !== lines.length) return null;
  return { entry, index, path, checkpoint: text.slice(gap + 2) };
}

function parseCheckpoint(text: string): { origin: string; size: number; root: Buffer } | null {
  const [origin = '', digits = '', base64 = '', end, ...rest] = text.split('\n');
  const size = parseDecimal(digits);
  const root = parseHash(base64);
  if (origin === '' || size === null || root === null || end !== '' || rest.length > 0) return null;
  return { origin, size, root };
}

function parseEntry(bytes: Buffer): ProvenEntry['entry'] | null {
  const value = parseJson(bytes.toString());
  if (!isRecord(value) || value['v'] !== 1 || typeof value['type'] !== 'string') return null;
  return value as JsonRecord & { type: string };
}

function isExpected(found: ProvenEntry, { seq, hash, type, purpose }: ProofExpectations): boolean {
  return (
    (seq === undefined || seq === found.seq) &&
    (hash === undefined || hash === found.hash) &&
    (type === undefined || type === found.entry.type) &&
    (purpose === undefined || purpose === found.entry['purpose'])
  );
}

/** @returns the required number of witnesses @throws {ConsentError} config for an empty list, which would require none */
function readMinWitnesses({ witnesses, minWitnesses }: ProofExpectations): number {
  if (witnesses === undefined && minWitnesses === undefined) return 0;
  const keyCount = Array.isArray(witnesses) ? witnesses.length : 0;
  const min = minWitnesses ?? keyCount;
  if (Number.isInteger(min) && min >= 1 && min <= keyCount) return min;
  throw new ConsentError('verifyProof', 'config', { hint: 'minWitnesses is 1 to the number of witnesses' });
}

/** Refuses a key that appears twice, because it would count twice, and the log's own key, which is no witness. */
function witnessKeys(logKey: VerifierKey, texts: readonly string[]): VerifierKey[] {
  const keys = texts.map(parseWitnessKey).filter((key) => key !== null);
  const different = new Set([logKey, ...keys].map(({ publicKey }) => publicKey.toString('hex')));
  if (different.size !== texts.length + 1) throw refusal('malformed-key');
  return keys;
}

const cosignersOf = (note: SignedNote, keys: readonly VerifierKey[]): Cosigner[] =>
  keys.flatMap((key) => {
    const time = cosignedAt(note, key);
    return time === null ? [] : [{ name: key.name, time }];
  });

/** @throws {ConsentError} proof; its `code` names the failed check */
export function verifyProof(text: string, expected: ProofExpectations): ProvenEntry {
  const min = readMinWitnesses(expected);
  const key = parseVkey(expected.vkey);
  if (key === null) throw refusal('malformed-key');
  const keys = witnessKeys(key, expected.witnesses ?? []);
  const proof = parse(text);
  if (proof === null) throw refusal('malformed-proof');
  const note = parseNote(proof.checkpoint);
  if (note === null) throw refusal('malformed-checkpoint');
  if (!isSignedBy(note, key)) throw refusal('not-signed');
  const checkpoint = parseCheckpoint(note.text);
  if (checkpoint === null) throw refusal('malformed-checkpoint');
  const { origin, size, root } = checkpoint;
  if (origin !== key.name) throw refusal('other-log');
  const witnesses = cosignersOf(note, keys);
  if (witnesses.length < min) throw refusal('not-witnessed');
  const leaf = leafHash(proof.entry);
  if (!isIncluded(proof.index, size, leaf, proof.path, root)) throw refusal('not-included');
  const entry = parseEntry(proof.entry);
  if (entry === null) throw refusal('malformed-entry');
  const seq = proof.index;
  const hash = leaf.toString('hex');
  const found = { seq, hash, entry, origin, size, root: root.toString('hex'), witnesses };
  if (!isExpected(found, expected)) throw refusal('unexpected-entry');
  return found;
}

const parseHex = (text: unknown): Buffer | null =>
  typeof text === 'string' && /^[0-9a-f]{64}$/.test(text) ? Buffer.from(text, 'hex') : null;

const isSize = (size: number): boolean => Number.isSafeInteger(size) && size >= 1;

/**
 * Verifies that a log of `newSize` entries begins with all `oldSize` entries of an earlier checkpoint (RFC 9162 section 2.1.4.2).
 * All hashes are lower-case hex.
 * @throws {ConsentError} proof, `malformed-proof` or `not-consistent`
 */
export function verifyConsistency(
  oldSize: number,
  oldRoot: string,
  newSize: number,
  newRoot: string,
  proof: readonly string[],
): void {
  const refuse = (code: string): ConsentError => new ConsentError('verifyConsistency', 'proof', { code });
  const [before, after, ...hashes] = [oldRoot, newRoot, ...proof].map(parseHex);
  const path = hashes.filter((hash) => hash !== null);
  const isWhole = path.length === proof.length && path.length <= MAX_PATH;
  if (!isSize(oldSize) || !isSize(newSize) || !before || !after || !isWhole) throw refuse('malformed-proof');
  if (!isExtension({ size: oldSize, root: before }, { size: newSize, root: after }, path))
    throw refuse('not-consistent');
}
