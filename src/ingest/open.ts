import { z } from 'zod';
import { noteRefusal } from '../http/reply.ts';
import { SECOND } from '../lib/clock.ts';
import { decodeBase64 } from '../lib/crypto.ts';
import { tryOr } from '../lib/errors.ts';
import { parseStrictJson } from '../lib/json.ts';
import { type Plaintext, plaintextSchema, type SealedBundle, sealedBundleSchema } from '../schema/bundle.ts';
import { IV_BYTES, POINT_BYTES } from '../seal/constants.ts';
import type { Tenant } from '../tenants/tenant.ts';
import type { TenantLookup } from './ports.ts';

/** Turns the body of a request into a plaintext. The first two steps may run in a thread (decrypt/). */

const compiled = z.compile(sealedBundleSchema);
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads a SealedBundle: UTF-8, JSON without duplicate keys, exactly the four fields, canonical base64.
 * @returns null if the body is not one
 */
export function readEnvelope(body: Uint8Array): SealedBundle | null {
  const value = tryOr((): unknown => parseStrictJson(utf8.decode(body)), null);
  const bundle = compiled.safeParse(value).data;
  if (!bundle) return null;
  const { iv, ct, epk } = bundle;
  const sized = decodeBase64(iv)?.length === IV_BYTES && decodeBase64(ct) !== null;
  const pointed = epk === undefined || decodeBase64(epk)?.length === POINT_BYTES;
  return sized && pointed ? bundle : null;
}

/** A bundle after decryption and before its plaintext is parsed. */
export interface Unsealed {
  readonly kid: string;
  /** True for a bundle without `epk`. */
  readonly symmetric: boolean;
  /** Null if the symmetric key or no key opened it. */
  readonly generation: number | null;
  /** Null if no live key of the tenant opened it. */
  readonly plaintext: Uint8Array | null;
}

export type Openers = Pick<Tenant, 'openers' | 'symmetricOpener'>;

/**
 * Opens with the live generations of the tenant that the bundle names, newest first; `keys` are undefined for
 * no tenant.
 */
export function unseal(bundle: SealedBundle, keys: Openers | undefined): Unsealed {
  const { kid, epk } = bundle;
  if (epk === undefined) {
    const plaintext = keys?.symmetricOpener?.(bundle) ?? null;
    return { kid, symmetric: true, generation: null, plaintext };
  }
  for (const { generation, open } of keys?.openers ?? []) {
    const plaintext = open(bundle);
    if (plaintext) return { kid, symmetric: false, generation, plaintext };
  }
  return { kid, symmetric: false, generation: null, plaintext: null };
}

/** Contract 3.1: for an unknown kid an asymmetric bundle gets 400, a symmetric one 401. */
export const reasonForNoTenant = (symmetric: boolean): 'decrypt-failed' | 'unknown-key' =>
  symmetric ? 'unknown-key' : 'decrypt-failed';

/** A plaintext that does not parse looks like a bad tag to anyone without the key. */
function parsePlaintext(bytes: Uint8Array): Plaintext | null {
  return tryOr(() => plaintextSchema.safeParse(parseStrictJson(utf8.decode(bytes))).data, null) ?? null;
}

/** The tenant is looked up now, because it may have been removed while a thread opened its bundle. */
export function readPlaintext({ kid, symmetric, plaintext: bytes }: Unsealed, tenants: TenantLookup) {
  const tenant = tenants(kid);
  if (!tenant) noteRefusal('unknown-kid', kid);
  if (!tenant || (symmetric && !tenant.symmetricOpener))
    return { ok: false, reason: reasonForNoTenant(symmetric) } as const;
  const plaintext = bytes && parsePlaintext(bytes);
  if (!plaintext) return { ok: false, reason: 'decrypt-failed' } as const;
  return { ok: true, tenant, plaintext } as const;
}

/** Both directions: a bundle from the future is as stale as an old one. */
export function isFresh(clientTs: number, now: number, maxSkewSeconds: number): boolean {
  return Math.abs(now - clientTs) <= maxSkewSeconds * SECOND;
}
