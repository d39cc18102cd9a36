import { z } from 'zod';
import { decodeBase64 } from '../lib/base64.ts';
import { parseStrictJson } from '../lib/strict-json.ts';
import { type SealedBundle, sealedBundleSchema } from '../schema/bundle.ts';

/** What the fields hold once decoded (interface section 2). */
const IV_BYTES = 12;
const POINT_BYTES = 65;

const compiled = z.compile(sealedBundleSchema);
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Pre-core: is this a SealedBundle at all? UTF-8, JSON without duplicate keys, the four fields and no other, canonical
 * base64. Null: it is not.
 */
export function readEnvelope(body: Uint8Array): SealedBundle | null {
  let value: unknown;
  try {
    value = parseStrictJson(utf8.decode(body));
  } catch {
    return null;
  }
  const parsed = compiled.safeParse(value);
  if (!parsed.success) return null;
  const { iv, ct, epk } = parsed.data;
  const sized = decodeBase64(iv)?.length === IV_BYTES && decodeBase64(ct) !== null;
  const pointed = epk === undefined || decodeBase64(epk)?.length === POINT_BYTES;
  return sized && pointed ? parsed.data : null;
}
