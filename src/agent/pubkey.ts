import { ASYMMETRIC_ALG, POINT_BYTES, UNCOMPRESSED } from '../seal/constants.ts';
import { fromBase64 } from './bytes.ts';
import { isUnavailable, request, unavailable } from './request.ts';
import type { Recipient, Unavailable } from './types.ts';

/** For the life of the page; a rotation is noticed by `decrypt-failed`, which asks again. */
const cache = new Map<string, Recipient>();

function isPoint(publicKey: string): boolean {
  try {
    const bytes = fromBase64(publicKey);
    return bytes.length === POINT_BYTES && bytes[0] === UNCOMPRESSED;
  } catch {
    return false;
  }
}

function readKey(body: unknown, kid: string): Recipient | null {
  const { kid: named, alg, publicKey } = (body ?? {}) as Record<string, unknown>;
  if (named !== kid || alg !== ASYMMETRIC_ALG || typeof publicKey !== 'string') return null;
  return isPoint(publicKey) ? { kid, publicKey } : null;
}

/**
 * The tenant's public seal key (GET /_fp/pubkey).
 * @param again past both caches, this page's and the browser's
 */
export async function publicKeyOf(
  endpoint: string,
  kid: string,
  signal: AbortSignal,
  again: boolean,
): Promise<Recipient | Unavailable> {
  const url = `${endpoint}/_fp/pubkey?kid=${encodeURIComponent(kid)}`;
  const known = cache.get(url);
  if (known && !again) return known;
  const reply = await request(url, { signal, credentials: 'omit', cache: again ? 'reload' : 'default' });
  if (isUnavailable(reply)) return reply;
  const key = reply.status === 200 ? readKey(reply.body, kid) : null;
  if (!key) return unavailable('key', reply);
  cache.set(url, key);
  return key;
}
