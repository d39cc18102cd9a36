import { type IncomingMessage, request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { type AllowAddress, checkLiteralHost, EgressRefused, guardedLookup, publicOnly } from './guard.ts';

export interface FetchOptions {
  /** Asked for, and required of the answer; null takes any that holds JSON. */
  readonly mediaType: string | null;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly allow?: AllowAddress;
  /** Further certificate authorities, for a directory inside the operator's own perimeter. */
  readonly ca?: string;
  /** Takes http too, from this machine alone. */
  readonly plainLoopback?: boolean;
}

const onlyLoopback: AllowAddress = (address) => address.range() === 'loopback';

function read(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) response.destroy(new EgressRefused('the document is too large'));
      else chunks.push(chunk);
    });
    response.on('end', () => resolve(Buffer.concat(chunks)));
    response.on('error', reject);
  });
}

function checkResponse(response: IncomingMessage, mediaType: string | null): void {
  if (response.statusCode !== 200)
    throw new EgressRefused(`it answered ${response.statusCode ?? 0} and not 200`);
  if (mediaType === null) return;
  const type = response.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== mediaType) throw new EgressRefused(`its media type is not ${mediaType}`);
}

function open(url: URL, options: FetchOptions, signal: AbortSignal): Promise<IncomingMessage> {
  const tls = url.protocol === 'https:';
  if (!tls && !(url.protocol === 'http:' && options.plainLoopback === true))
    throw new EgressRefused('only https is fetched');
  const allow = tls ? (options.allow ?? publicOnly) : onlyLoopback;
  checkLiteralHost(url.hostname, allow);
  return new Promise((resolve, reject) => {
    const call = (tls ? tlsRequest : plainRequest)(url, {
      lookup: guardedLookup(allow),
      signal,
      agent: false,
      headers: { accept: options.mediaType ?? 'application/json', 'user-agent': 'gpd' },
      ...(options.ca === undefined ? {} : { ca: options.ca }),
    });
    call.on('response', resolve);
    call.on('error', reject);
    call.end();
  });
}

function reasonOf(error: unknown, signal: AbortSignal): string {
  if (error instanceof EgressRefused) return error.message;
  if (signal.aborted) return 'it did not answer in time';
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? `it cannot be reached (${code})` : 'it cannot be read';
}

/**
 * GETs a JSON document over https: exact 200, the right media type, no redirect, a size and a time limit, public
 * addresses only unless `allow` says otherwise.
 * @throws {EgressRefused} with a reason that quotes nothing of the answer
 */
export async function fetchJsonDocument(address: string, options: FetchOptions): Promise<unknown> {
  const signal = AbortSignal.timeout(options.timeoutMs);
  try {
    const response = await open(new URL(address), options, signal);
    try {
      checkResponse(response, options.mediaType);
      const bytes = await read(response, options.maxBytes);
      return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown;
    } finally {
      response.destroy();
    }
  } catch (error) {
    throw new EgressRefused(reasonOf(error, signal));
  }
}
