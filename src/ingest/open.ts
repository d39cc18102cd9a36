import { noteRefusal } from '../http/reply.ts';
import { orElse } from '../lib/functions.ts';
import { parseStrictJson } from '../lib/json.ts';
import { type Plaintext, plaintextSchema, type SealedBundle } from '../schema/bundle.ts';
import type { IngestTenant, TenantLookup } from './ports.ts';

/** A bundle after its cryptography and before its meaning. */
export interface Unsealed {
  readonly kid: string;
  /** It came without `epk`. */
  readonly symmetric: boolean;
  /** Null: no live key of the tenant opened it. */
  readonly plaintext: Buffer | null;
}

export type Openers = Pick<IngestTenant, 'openers' | 'symmetricOpener'>;

const DECRYPT_FAILED = { ok: false, reason: 'decrypt-failed' } as const;

/** An unknown kid is a missing opener (400) when asymmetric, an unknown key (401) when symmetric (contract 3.1). */
export const ofNoTenant = (symmetric: boolean): 'decrypt-failed' | 'unknown-key' =>
  symmetric ? 'unknown-key' : 'decrypt-failed';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decrypt(bundle: SealedBundle, keys: Openers): Buffer | null {
  if (bundle.epk === undefined) return keys.symmetricOpener?.(bundle) ?? null;
  for (const open of keys.openers) {
    const plaintext = open(bundle);
    if (plaintext) return plaintext;
  }
  return null;
}

/** Opens with the live generations of the tenant that the bundle names, newest first; `keys` are undefined for no tenant. */
export function unseal(bundle: SealedBundle, keys: Openers | undefined): Unsealed {
  const { kid, epk } = bundle;
  return { kid, symmetric: epk === undefined, plaintext: keys ? decrypt(bundle, keys) : null };
}

/** A plaintext that does not parse looks like a bad tag to anyone without the key. */
function parsePlaintext(bytes: Buffer): Plaintext | null {
  return orElse(() => plaintextSchema.safeParse(parseStrictJson(utf8.decode(bytes))).data, null) ?? null;
}

/** The tenant is asked for here: it may have gone while a thread opened its bundle. */
export function readOpened(unsealed: Unsealed, tenants: TenantLookup) {
  const tenant = tenants(unsealed.kid);
  if (!tenant) noteRefusal('unknown-kid');
  if (!tenant || (unsealed.symmetric && !tenant.symmetricOpener))
    return { ok: false, reason: ofNoTenant(unsealed.symmetric) } as const;
  const plaintext = unsealed.plaintext && parsePlaintext(unsealed.plaintext);
  return plaintext ? ({ ok: true, tenant, plaintext } as const) : DECRYPT_FAILED;
}
