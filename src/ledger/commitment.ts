import { hmacSha256 } from '../lib/hash.ts';
import { lp4 } from './length-prefix.ts';

const LABEL = 'gpd/verdict/v1';

/**
 * Commitment to one ledgered verdict: base64url of HMAC-SHA-256 under its own 16-byte salt over
 * lp4("gpd/verdict/v1") || lp4(kid) || lp4(requestId) || lp4(verdict), the verdict being the stored bytes themselves.
 * Without the salt it says nothing; the hourly `verdicts.sealed` root is built from these.
 */
export function commitVerdict(salt: Uint8Array, kid: string, requestId: string, verdict: string): string {
  const parts = [LABEL, kid, requestId, verdict].map(lp4);
  return hmacSha256(salt, Buffer.concat(parts)).toString('base64url');
}
