import { decodeBase64Url } from '../lib/base64.ts';
import { hmacSha256, sha256Text } from '../lib/hash.ts';

/**
 * The keyed reference under which a principal is stored: without the tenant's key it names nobody. In NFC once more:
 * whatever way an id came in by, its spellings have one reference.
 */
export function principalRef(principalKey: Uint8Array, principalId: string): string {
  return hmacSha256(principalKey, principalId.normalize('NFC')).toString('base64url');
}

const SECRET_BYTES = 32;

/** A browser principal's id: `b_` + base64url(SHA-256(its 32 secret bytes)). */
export function browserPrincipalId(principalSecret: string): string | null {
  const bytes = decodeBase64Url(principalSecret);
  return bytes?.length === SECRET_BYTES ? `b_${sha256Text(bytes)}` : null;
}
