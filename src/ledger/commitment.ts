import { hmacSha256Text } from '../lib/hash.ts';
import { lp4 } from './length-prefix.ts';

const VERDICT = 'gpd/verdict/v1';
const AUDIT = 'gpd/audit/v1';

function commit(salt: Uint8Array, parts: readonly string[]): string {
  return hmacSha256Text(salt, lp4(parts));
}

/**
 * Commitment to one ledgered verdict: base64url of HMAC-SHA-256 under its own 16-byte salt over
 * lp4("gpd/verdict/v1") || lp4(kid) || lp4(requestId) || lp4(verdict), the verdict being the stored bytes themselves.
 * Without the salt it says nothing; the hourly `verdicts.sealed` root is built from these.
 */
export function commitVerdict(salt: Uint8Array, kid: string, requestId: string, verdict: string): string {
  return commit(salt, [VERDICT, kid, requestId, verdict]);
}

/** Commitment to one row of the audit log, in the same manner; `row` is its text. The hourly `audit.sealed` root is built from these. */
export function commitAudit(salt: Uint8Array, kid: string, row: string): string {
  return commit(salt, [AUDIT, kid, row]);
}
