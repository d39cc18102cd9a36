import { parseStrictJson } from '../lib/strict-json.ts';
import { type Plaintext, plaintextSchema, type SealedBundle } from '../schema/bundle.ts';
import type { IngestTenant, TenantLookup } from './ports.ts';

export type Opened =
  | { readonly ok: true; readonly tenant: IngestTenant; readonly plaintext: Plaintext }
  | { readonly ok: false; readonly reason: 'decrypt-failed' | 'unknown-key' };

const DECRYPT_FAILED: Opened = { ok: false, reason: 'decrypt-failed' };
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function unseal(bundle: SealedBundle, tenant: IngestTenant): Buffer | null {
  if (bundle.epk === undefined) return tenant.symmetricOpener?.(bundle) ?? null;
  for (const open of tenant.openers) {
    const plaintext = open(bundle);
    if (plaintext) return plaintext;
  }
  return null;
}

/** A plaintext that does not parse looks like a bad tag to whoever does not hold the key. */
function parsePlaintext(bytes: Buffer): Plaintext | null {
  try {
    const parsed = plaintextSchema.safeParse(parseStrictJson(utf8.decode(bytes)));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

/**
 * Opens the bundle with the tenant's live generations, newest first. An unknown kid is a missing opener (400) when
 * asymmetric, an unknown key (401) when symmetric (contract 3.1).
 */
export function openBundle(bundle: SealedBundle, tenants: TenantLookup): Opened {
  const tenant = tenants(bundle.kid);
  if (bundle.epk === undefined && !tenant?.symmetricOpener) return { ok: false, reason: 'unknown-key' };
  if (!tenant) return DECRYPT_FAILED;
  const bytes = unseal(bundle, tenant);
  const plaintext = bytes && parsePlaintext(bytes);
  return plaintext ? { ok: true, tenant, plaintext } : DECRYPT_FAILED;
}
