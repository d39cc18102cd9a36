import { canonicalJson } from '../lib/canonical-json.ts';
import { hmacSha256 } from '../lib/hash.ts';
import { lp4 } from './length-prefix.ts';

/** Contract section 7: what a personal entry says of a person without naming anybody. */

/** What was decided and on what ground. Kept beside the log and destroyed on erasure. */
export interface EntryDetail {
  /** The policy version that was shown; null for an entry of no policy. */
  readonly policyVersion: number | null;
  readonly gpc: boolean;
  /** Who wrote it, for example the scope of the key. */
  readonly source: string;
  /** RFC 3339 in UTC, or null when it does not expire. */
  readonly expiresAt: string | null;
}

/** All that opens an entry. Without the key nobody can, not even who knows the rest. */
export interface Opening {
  /** 32 bytes, the principal's own. */
  readonly key: Uint8Array;
  /** 16 bytes, the entry's own: two entries of one principal do not look alike. */
  readonly salt: Uint8Array;
  /** Well-formed Unicode. */
  readonly principalId: string;
  readonly detail: EntryDetail;
}

function commit(key: Uint8Array, parts: readonly (string | Uint8Array)[]): string {
  return hmacSha256(key, lp4(parts)).toString('base64url');
}

/** C1: base64url of HMAC-SHA-256(key, lp4("gpd/subject/v1") || lp4(principalId) || lp4(salt)). */
export function commitSubject({ key, salt, principalId }: Omit<Opening, 'detail'>): string {
  return commit(key, ['gpd/subject/v1', principalId, salt]);
}

/** C2: base64url of HMAC-SHA-256(key, lp4("gpd/body/v1") || lp4(JCS(detail)) || lp4(salt)). */
export function commitBody({ key, salt, detail }: Omit<Opening, 'principalId'>): string {
  const { policyVersion, gpc, source, expiresAt } = detail;
  return commit(key, ['gpd/body/v1', canonicalJson({ policyVersion, gpc, source, expiresAt }), salt]);
}
