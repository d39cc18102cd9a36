import { ASYMMETRIC_ALG, POINT_BYTES, UNCOMPRESSED } from '../seal/constants.ts';
import { fromBase64 } from './bytes.ts';
import { isUnavailable, request, unavailable } from './request.ts';
import type { Recipient, Unavailable } from './types.ts';

export interface ServerFacts {
  readonly key: Recipient;
  /**
   * Milliseconds by which this device's clock is ahead of the server's; 0 if it is right or not known yet.
   */
  readonly aheadMs: number;
}

/** `Date` has whole seconds and an answer takes its time: nothing to correct. */
const TOLERATED_MS = 60_000;

/**
 * Kept for the life of the page; `decrypt-failed` shows a rotation, `stale` a wrong clock, and both ask
 * again.
 */
const cache = new Map<string, ServerFacts>();

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
 * The tenant's public seal key and the server's time (GET /_fp/pubkey).
 * @param again past both caches, this page's and the browser's: only such an answer tells the time
 */
export async function serverFactsOf(
  endpoint: string,
  kid: string,
  signal: AbortSignal,
  again: boolean,
): Promise<ServerFacts | Unavailable> {
  const url = `${endpoint}/_fp/pubkey?kid=${encodeURIComponent(kid)}`;
  const cached = cache.get(url);
  if (cached && !again) return cached;
  const reply = await request(url, { signal, credentials: 'omit', cache: again ? 'reload' : 'default' });
  if (isUnavailable(reply)) return reply;
  const key = reply.status === 200 ? readKey(reply.body, kid) : null;
  if (!key) return unavailable('key', reply);
  const aheadMs = again && Math.abs(reply.aheadMs) > TOLERATED_MS ? reply.aheadMs : 0;
  const facts = { key, aheadMs };
  cache.set(url, facts);
  return facts;
}
