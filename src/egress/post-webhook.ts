import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type AllowAddress, checkLiteralHost, EgressRefused, guardedLookup, publicOnly } from './guard.ts';

const TIMEOUT_MS = 10_000;

export interface PostTarget {
  readonly url: string;
  /** The operator vouches for an address inside the perimeter, plain http included. */
  readonly allowPrivate: boolean;
}

const anywhere: AllowAddress = () => true;

/**
 * POSTs a delivery; the answer's body is not read and a redirect is not followed.
 * @returns the status
 * @throws {EgressRefused} with a reason that names no address
 */
export async function postWebhook(
  target: PostTarget,
  body: string,
  headers: Readonly<Record<string, string>>,
  timeoutMs = TIMEOUT_MS,
): Promise<number> {
  const url = new URL(target.url);
  const allow = target.allowPrivate ? anywhere : publicOnly;
  if (url.protocol !== 'https:' && !target.allowPrivate) throw new EgressRefused('only https is called');
  checkLiteralHost(url.hostname, allow);
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const call = request(url, {
      method: 'POST',
      lookup: guardedLookup(allow),
      signal: AbortSignal.timeout(timeoutMs),
      agent: false,
      headers: {
        ...headers,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'gpd',
      },
    });
    call.on('response', (response) => {
      response.destroy();
      resolve(response.statusCode ?? 0);
    });
    call.on('error', (error: NodeJS.ErrnoException) => {
      const late = error.name === 'AbortError' || error.name === 'TimeoutError';
      const why = late ? 'it did not answer in time' : `it cannot be reached (${error.code ?? error.name})`;
      reject(error instanceof EgressRefused ? error : new EgressRefused(why));
    });
    call.end(body);
  });
}
