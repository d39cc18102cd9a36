import { canonicalJson } from '../lib/canonical-json.ts';
import { hmacSha256Text } from '../lib/hash.ts';
import type { Answer } from '../schema/answer.ts';
import type { entryDetailSchema } from '../schema/consent.ts';

/** Contract section 7: what the log says of a person, a verdict or a row of the audit log without telling any of it. */

/** What was decided and on what ground. Kept next to the log and destroyed on erasure. */
export type EntryDetail = Answer<typeof entryDetailSchema>;

/** Of `consent.doubted`: the class of the verdict that rode on the grant; `human` where a contest was overturned. */
export interface DoubtDetail {
  readonly class: 'declared_agent' | 'undeclared_automation' | 'human';
  readonly source: 'ingest' | 'contest';
}

/** All that opens an entry. Without the key nobody can, not even who knows the rest. */
export interface CommitmentOpening {
  /** 32 bytes, the principal's own. */
  readonly key: Uint8Array;
  /** 16 bytes, the entry's own: two entries of one principal do not look alike. */
  readonly salt: Uint8Array;
  /** Well-formed Unicode. */
  readonly principalId: string;
  readonly detail: EntryDetail | DoubtDetail;
}

/**
 * lp4 of each part in turn (contract section 7): 4-byte big-endian length, then the bytes, so that no two lists of parts
 * give one message. Text is UTF-8: a lone surrogate would be replaced, so callers pass well-formed Unicode only.
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

function toldOf(detail: CommitmentOpening['detail']) {
  if ('class' in detail) return { class: detail.class, source: detail.source };
  const { policyVersion, gpc, source, expiresAt, overGpc } = detail;
  return { policyVersion, gpc, source, expiresAt, ...(overGpc && { overGpc }) };
}

/** C2: base64url of HMAC-SHA-256(key, lp4("gpd/body/v1") || lp4(JCS(detail)) || lp4(salt)). */
export function commitBody({ key, salt, detail }: Omit<CommitmentOpening, 'principalId'>): string {
  return commit(key, ['gpd/body/v1', canonicalJson(toldOf(detail)), salt]);
}

/**
 * Commitment to one ledgered verdict: base64url of HMAC-SHA-256 under its own 16-byte salt over
 * lp4("gpd/verdict/v1") || lp4(kid) || lp4(requestId) || lp4(verdict), the verdict being the stored bytes themselves.
 * Without the salt it says nothing; the hourly `verdicts.sealed` root is built from these.
 */
export function commitVerdict(salt: Uint8Array, kid: string, requestId: string, verdict: string): string {
  return commit(salt, ['gpd/verdict/v1', kid, requestId, verdict]);
}

/** Commitment to one row of the audit log, in the same manner; `row` is its text. The hourly `audit.sealed` root is built from these. */
export function commitAudit(salt: Uint8Array, kid: string, row: string): string {
  return commit(salt, ['gpd/audit/v1', kid, row]);
}
