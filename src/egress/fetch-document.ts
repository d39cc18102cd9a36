import type { IncomingMessage } from 'node:http';
import { type AllowAddress, EgressRefused, publicOnly } from './guard.ts';
import { call, onlyLoopback, readBody } from './send.ts';

export interface FetchOptions {
  /** Asked for, and required of the answer; null takes any that holds JSON. */
  readonly mediaType: string | null;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly allow?: AllowAddress;
  readonly ca?: string;
  /** Takes http too, from this machine alone. */
  readonly plainLoopback?: boolean;
}

function checkResponse(response: IncomingMessage, mediaType: string | null): void {
  if (response.statusCode !== 200)
    throw new EgressRefused(`it answered ${response.statusCode ?? 0} and not 200`);
  if (mediaType === null) return;
  const type = response.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== mediaType) throw new EgressRefused(`its media type is not ${mediaType}`);
}

/**
 * GETs a JSON document over https: exact 200, the right media type, no redirect, a size and a time limit, public
 * addresses only unless `allow` says otherwise.
 * @throws {EgressRefused} with a reason that quotes nothing of the answer
 */
export async function fetchJsonDocument(address: string, options: FetchOptions): Promise<unknown> {
  const { mediaType, maxBytes, allow = publicOnly, plainLoopback, ca } = options;
  const signal = AbortSignal.timeout(options.timeoutMs);
  const headers = { accept: mediaType ?? 'application/json', 'user-agent': 'gpd' };
  const allowPlain = plainLoopback === true ? onlyLoopback : null;
  return call(address, { headers, signal, allow, allowPlain, ca }, async (response) => {
    checkResponse(response, mediaType);
    const bytes = await readBody(response, maxBytes);
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown;
  });
}
