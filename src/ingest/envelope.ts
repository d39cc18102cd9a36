import { z } from 'zod';
import { decodeBase64 } from '../lib/crypto.ts';
import { orElse } from '../lib/functions.ts';
import { parseStrictJson } from '../lib/json.ts';
import { type SealedBundle, sealedBundleSchema } from '../schema/bundle.ts';
import { IV_BYTES, POINT_BYTES } from '../seal/constants.ts';

const compiled = z.compile(sealedBundleSchema);
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Pre-core: is this a SealedBundle at all? UTF-8, JSON without duplicate keys, the four fields and no other, canonical
 * base64. Null: it is not.
 */
export function readEnvelope(body: Uint8Array): SealedBundle | null {
  const value = orElse((): unknown => parseStrictJson(utf8.decode(body)), null);
  const bundle = compiled.safeParse(value).data;
  if (!bundle) return null;
  const { iv, ct, epk } = bundle;
  const sized = decodeBase64(iv)?.length === IV_BYTES && decodeBase64(ct) !== null;
  const pointed = epk === undefined || decodeBase64(epk)?.length === POINT_BYTES;
  return sized && pointed ? bundle : null;
}
