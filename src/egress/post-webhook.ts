import { SECOND } from '../lib/clock.ts';
import { EgressRefused, publicOnly } from './guard.ts';
import { anywhere, call } from './send.ts';

const TIMEOUT_MS = 10 * SECOND;

/**
 * POSTs a delivery; the answer's body is not read and a redirect is not followed. By `allowPrivate` the operator vouches for an
 * address inside the perimeter, plain http included.
 * @returns the status
 * @throws {EgressRefused} with a reason that names no address
 */
export async function postWebhook(
  target: { readonly url: string; readonly allowPrivate: boolean },
  body: string,
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  const url = new URL(target.url);
  if (url.protocol !== 'https:' && !target.allowPrivate)
    throw new EgressRefused('only https targets are called');
  const about = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const options = {
    method: 'POST',
    headers: { ...headers, ...about, 'user-agent': 'gpd' },
    body,
    signal: AbortSignal.timeout(TIMEOUT_MS),
    allow: target.allowPrivate ? anywhere : publicOnly,
    allowPlain: anywhere,
  };
  return call(url, options, ({ statusCode }) => statusCode ?? 0);
}
