import { decodeBase64 } from '../lib/base64.ts';
import { parseStrictJson } from '../lib/strict-json.ts';
import { type SealedBundle, sealedBundleSchema } from '../schema/bundle.ts';

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
  const parsed = sealedBundleSchema.safeParse(value);
  if (!parsed.success) return null;
  const { iv, ct, epk } = parsed.data;
  const canonical = decodeBase64(iv) && decodeBase64(ct) && (epk === undefined || decodeBase64(epk));
  return canonical ? parsed.data : null;
}
