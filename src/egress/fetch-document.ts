import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { type AllowAddress, checkLiteralHost, EgressRefused, guardedLookup, publicOnly } from './guard.ts';

export interface FetchOptions {
  readonly mediaType: string;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly allow?: AllowAddress;
  /** Further certificate authorities, for a directory inside the operator's own perimeter. */
  readonly ca?: string;
}

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

function checkResponse(response: IncomingMessage, mediaType: string): void {
  if (response.statusCode !== 200)
    throw new EgressRefused(`it answered ${response.statusCode ?? 0} and not 200`);
  const type = response.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== mediaType) throw new EgressRefused(`its media type is not ${mediaType}`);
}

function open(url: URL, options: FetchOptions, signal: AbortSignal): Promise<IncomingMessage> {
  const allow = options.allow ?? publicOnly;
  checkLiteralHost(url.hostname, allow);
  return new Promise((resolve, reject) => {
    const call = request(url, {
      lookup: guardedLookup(allow),
      signal,
      agent: false,
      headers: { accept: options.mediaType, 'user-agent': 'gpd' },
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
 * addresses only.
 * @throws {EgressRefused} with a reason that quotes nothing of the answer
 */
export async function fetchJsonDocument(address: string, options: FetchOptions): Promise<unknown> {
  const signal = AbortSignal.timeout(options.timeoutMs);
  try {
    const url = new URL(address);
    if (url.protocol !== 'https:') throw new EgressRefused('only https is fetched');
    const response = await open(url, options, signal);
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
