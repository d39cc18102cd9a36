import { isoTime } from '../lib/clock.ts';
import { decodeBase64Url, hmacSha256Text } from '../lib/crypto.ts';
import { canonicalJson, type Json } from '../lib/json.ts';
import type { Answer } from '../schema/answer.ts';
import type { entryDetailSchema } from '../schema/consent.ts';
import { appendLeaves, type Frontier, frontierRoot, leafHash } from './merkle.ts';
import { parseVkey } from './note.ts';
import { MAX_ENTRY_BYTES } from './tiles.ts';

/** Builds the entries of a log (contract section 7). An entry is the RFC 8785 bytes of one JSON object. */

export const PERSONAL_TYPES = [
  'consent.granted',
  'consent.denied',
  'consent.withdrawn',
  'consent.gpc-opt-out',
  'consent.doubted',
  'subject.linked',
  'subject.erased',
] as const;

export const IMPERSONAL_TYPES = [
  'ledger.genesis',
  'purpose.defined',
  'policy.published',
  'key.rotated',
  'banner.published',
  'verdicts.sealed',
  'audit.sealed',
  'retention.applied',
] as const;

export type PersonalType = (typeof PERSONAL_TYPES)[number];
export type ImpersonalType = (typeof IMPERSONAL_TYPES)[number];

export interface EntryHead<Type> {
  readonly type: Type;
  /** Epoch milliseconds; the entry keeps the second. */
  readonly at: number;
  readonly purpose: string | null;
}

/** `YYYY-MM-DDTHH:MM:SSZ`: milliseconds would help to link an entry with an access log. */
export function entryTime(epochMs: number): string {
  return `${isoTime(epochMs).slice(0, -'.000Z'.length)}Z`;
}

/**
 * @throws {RangeError} for an entry that would not fit into an entry bundle, and so could never be published
 */
function encodeEntry(
  { type, at, purpose }: EntryHead<string>,
  fields: Readonly<Record<string, Json>>,
): Buffer {
  const bytes = Buffer.from(canonicalJson({ v: 1, type, time: entryTime(at), purpose, ...fields }));
  if (bytes.length > MAX_ENTRY_BYTES) throw new RangeError('an entry has at most 65,535 bytes');
  return bytes;
}

export function personalEntry(head: EntryHead<PersonalType>, opening: CommitmentOpening): Buffer {
  return encodeEntry(head, { subject: commitSubject(opening), body: commitBody(opening) });
}

export function impersonalEntry(
  head: EntryHead<ImpersonalType>,
  body: Readonly<Record<string, Json>>,
): Buffer {
  return encodeEntry(head, { body });
}

/** Seq 0 of every log: its name and its first key. */
export function genesisEntry(at: number, vkey: string): Buffer {
  const key = parseVkey(vkey);
  if (key === null) throw new TypeError('not a verifier key');
  return impersonalEntry({ type: 'ledger.genesis', at, purpose: null }, { key: vkey, origin: key.name });
}

/** The decision and its grounds. Kept next to the log and destroyed on erasure. */
export type EntryDetail = Answer<typeof entryDetailSchema>;

/** Detail of `consent.doubted`: the class of the grant's verdict, or `human` after an overturned contest. */
export interface DoubtDetail {
  readonly class: 'declared_agent' | 'undeclared_automation' | 'human';
  readonly source: 'ingest' | 'contest';
}

/**
 * All values that open an entry's commitments (contract section 7). Without the key they cannot be opened,
 * even by someone who knows the rest.
 */
export interface CommitmentOpening {
  /** 32 bytes, one key per principal. */
  readonly key: Uint8Array;
  /** 16 bytes, one salt per entry: two entries of one principal look different. */
  readonly salt: Uint8Array;
  /** Well-formed Unicode. */
  readonly principalId: string;
  readonly detail: EntryDetail | DoubtDetail;
}

/**
 * Joins parts as lp4 (contract section 7): 4-byte big-endian length, then the bytes, so that no two lists of
 * parts give one message. Text is UTF-8 and must be well-formed: a lone surrogate would be replaced.
 */
function lp4(parts: readonly (string | Uint8Array)[]): Buffer {
  const bytes = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + 4 + Buffer.byteLength(part), 0));
  let at = 0;
  for (const part of parts) {
    const size = Buffer.byteLength(part);
    bytes.writeUInt32BE(size, at);
    if (typeof part === 'string') bytes.write(part, at + 4);
    else bytes.set(part, at + 4);
    at += 4 + size;
  }
  return bytes;
}

function commit(key: Uint8Array, parts: readonly (string | Uint8Array)[]): string {
  return hmacSha256Text(key, lp4(parts));
}

/** C1: base64url of HMAC-SHA-256(key, lp4("gpd/subject/v1") || lp4(principalId) || lp4(salt)). */
export function commitSubject({ key, salt, principalId }: Omit<CommitmentOpening, 'detail'>): string {
  return commit(key, ['gpd/subject/v1', principalId, salt]);
}

export function committedFields(detail: CommitmentOpening['detail']) {
  if ('class' in detail) return { class: detail.class, source: detail.source };
  const { policyVersion, gpc, source, expiresAt, definition, overGpc, recordedAt, evidence } = detail;
  return {
    policyVersion,
    gpc,
    source,
    expiresAt,
    ...(definition !== undefined && { definition }),
    ...(overGpc && { overGpc }),
    ...(recordedAt !== undefined && { recordedAt }),
    ...(evidence !== undefined && { evidence }),
  };
}

/** C2: base64url of HMAC-SHA-256(key, lp4("gpd/body/v1") || lp4(JCS(detail)) || lp4(salt)). */
export function commitBody({ key, salt, detail }: Omit<CommitmentOpening, 'principalId'>): string {
  return commit(key, ['gpd/body/v1', canonicalJson(committedFields(detail)), salt]);
}

/**
 * Commits to one verdict (contract section 7): base64url of HMAC-SHA-256 with a 16-byte salt as key, over
 * lp4("gpd/verdict/v1") || lp4(kid) || lp4(requestId) || lp4(verdict); `verdict` is the stored text. Without
 * the salt it reveals nothing. The hourly `verdicts.sealed` root is built from these.
 */
export function commitVerdict(salt: Uint8Array, kid: string, requestId: string, verdict: string): string {
  return commit(salt, ['gpd/verdict/v1', kid, requestId, verdict]);
}

/**
 * Commits to one row of the audit log like {@link commitVerdict}; `row` is its text. The hourly
 * `audit.sealed` root is built from these.
 */
export function commitAudit(salt: Uint8Array, kid: string, row: string): string {
  return commit(salt, ['gpd/audit/v1', kid, row]);
}

/**
 * Adds leaves to the RFC 6962 tree over commitments. A commitment that is changed, missing, added or out of
 * order gives another root.
 * @param commitments base64url, for example from `commitVerdict`; those after the ones in `frontier`
 */
export function addCommitments(frontier: Frontier, commitments: readonly string[]): Frontier {
  const leaves = commitments.map((text) => {
    const bytes = decodeBase64Url(text);
    if (bytes === null) throw new TypeError('a commitment is not base64url');
    return leafHash(bytes);
  });
  return appendLeaves(frontier, leaves).frontier;
}

/**
 * The body of `verdicts.sealed` and `audit.sealed` (contract section 7).
 * @param from epoch milliseconds, like `to`; covers rows from `from` on and before `to`
 */
export function anchorBody(from: number, to: number, frontier: Frontier) {
  return {
    from: entryTime(from),
    to: entryTime(to),
    count: frontier.size,
    /** Lower-case hex, like every hash in the API. */
    root: frontierRoot(frontier).toString('hex'),
  };
}
