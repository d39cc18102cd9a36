import { SECOND } from '../lib/clock.ts';
import { EgressRefused, publicOnly } from './guard.ts';
import { anywhere, send, whyRefused } from './send.ts';

const TIMEOUT_MS = 10 * SECOND;

export interface PostTarget {
  readonly url: string;
  /** The operator vouches for an address inside the perimeter, plain http included. */
  readonly allowPrivate: boolean;
}

/**
 * POSTs a delivery; the answer's body is not read and a redirect is not followed.
 * @returns the status
 * @throws {EgressRefused} with a reason that names no address
 */
export async function postWebhook(
  target: PostTarget,
  body: string,
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  const url = new URL(target.url);
  if (url.protocol !== 'https:' && !target.allowPrivate)
    throw new EgressRefused('only https targets are called');
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await send(url, {
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'gpd',
      },
      body,
      signal,
      allow: target.allowPrivate ? anywhere : publicOnly,
      allowPlain: anywhere,
    });
    response.destroy();
    return response.statusCode ?? 0;
  } catch (error) {
    throw whyRefused(error, signal);
  }
}
