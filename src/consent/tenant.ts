import { decodeBase64Url, sha256Text } from '../lib/crypto.ts';
import type { Tenant } from '../tenants/tenant.ts';

export type ConsentTenant = Tenant;

const SECRET_BYTES = 32;

/** A browser principal's id: `b_` + base64url(SHA-256(its 32 secret bytes)). */
export function browserPrincipalId(principalSecret: string): string | null {
  const bytes = decodeBase64Url(principalSecret);
  return bytes?.length === SECRET_BYTES ? `b_${sha256Text(bytes)}` : null;
}
