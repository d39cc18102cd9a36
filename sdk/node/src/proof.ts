import { decodeBase64, parseDecimal } from './base64.ts';
import { isRecord, type JsonRecord, parseJson } from './body.ts';
import { ConsentError } from './errors.ts';
import { isIncluded, leafHash } from './inclusion.ts';
import { isSignedBy, parseNote, parseVkey } from './note.ts';

/** c2sp.org/tlog-proof@v1 with its entry, checked offline (SPEC.md section 6). */

export interface ProofExpectations {
  /** The log's verifier key, got once by another way than the proof, and kept. */
  readonly vkey: string;
  /** Of the decision's `proof`; without them a true proof of another entry passes. */
  readonly seq?: number | undefined;
  readonly hash?: string | undefined;
  /** Such as `consent.granted`. */
  readonly type?: string | undefined;
  readonly purpose?: string | undefined;
}

export interface ProvenEntry {
  readonly seq: number;
  readonly hash: string;
  /** The entry itself; `subject` and `body` of a personal one are commitments. */
  readonly entry: Readonly<Record<string, unknown>> & { readonly type: string };
  /** The log's name. */
  readonly origin: string;
  /** Of the log that the checkpoint signs. */
  readonly size: number;
  readonly root: string;
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
  const [origin = '', digits = '', base64 = '', end, ...more] = text.split('\n');
  const size = parseDecimal(digits);
  const root = parseHash(base64);
  if (origin === '' || size === null || root === null || end !== '' || more.length > 0) return null;
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

/** @throws {ConsentError} proof; its `code` says which check failed */
export function verifyProof(text: string, expected: ProofExpectations): ProvenEntry {
  const key = parseVkey(expected.vkey);
  if (key === null) throw refusal('malformed-key');
  const proof = parse(text);
  if (proof === null) throw refusal('malformed-proof');
  const note = parseNote(proof.checkpoint);
  if (note === null) throw refusal('malformed-checkpoint');
  if (!isSignedBy(note, key)) throw refusal('not-signed');
  const checkpoint = parseCheckpoint(note.text);
  if (checkpoint === null) throw refusal('malformed-checkpoint');
  const { origin, size, root } = checkpoint;
  if (origin !== key.name) throw refusal('other-log');
  const leaf = leafHash(proof.entry);
  if (!isIncluded(proof.index, size, leaf, proof.path, root)) throw refusal('not-included');
  const entry = parseEntry(proof.entry);
  if (entry === null) throw refusal('malformed-entry');
  const seq = proof.index;
  const found = { seq, hash: leaf.toString('hex'), entry, origin, size, root: root.toString('hex') };
  if (!isExpected(found, expected)) throw refusal('unexpected-entry');
  return found;
}
