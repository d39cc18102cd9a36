import { type IncomingMessage, request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { type AllowAddress, checkLiteralHost, EgressRefused, guardedLookup } from './guard.ts';

/** The only way to call an address that the operator did not choose. */

export interface SendOptions {
  readonly method?: string;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  readonly allow: AllowAddress;
  /** Addresses that may be called over plain http; null: none. */
  readonly allowPlain: AllowAddress | null;
  /** Further certificate authorities, for a server inside the operator's own perimeter. */
  readonly ca?: string | undefined;
}

export const anywhere: AllowAddress = () => true;
export const onlyLoopback: AllowAddress = (address) => address.range() === 'loopback';

/** No redirect is followed. @throws {EgressRefused} before a byte is sent */
async function send(url: URL, options: SendOptions): Promise<IncomingMessage> {
  const { method = 'GET', headers, body, signal, ca } = options;
  const tls = url.protocol === 'https:';
  const allow = tls ? options.allow : options.allowPlain;
  if (!allow || !(tls || url.protocol === 'http:')) throw new EgressRefused('only https is fetched');
  checkLiteralHost(url.hostname, allow);
  return new Promise((resolve, reject) => {
    const call = (tls ? tlsRequest : plainRequest)(url, {
      method,
      headers,
      lookup: guardedLookup(allow),
      signal,
      agent: false,
      ...(ca === undefined ? {} : { ca }),
    });
    call.on('response', resolve);
    call.on('error', reject);
    call.end(body);
  });
}

export function readBody(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
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

/**
 * The same with a time limit, and the answer read or left.
 * @throws {EgressRefused} with a reason that quotes nothing of the answer
 */
export async function call<T>(
  address: string | URL,
  options: SendOptions,
  read: (response: IncomingMessage) => T | Promise<T>,
): Promise<T> {
  try {
    const response = await send(new URL(address), options);
    try {
      return await read(response);
    } finally {
      response.destroy();
    }
  } catch (error) {
    throw whyRefused(error, options.signal);
  }
}

function whyRefused(error: unknown, signal: AbortSignal): EgressRefused {
  if (error instanceof EgressRefused) return error;
  if (signal.aborted) return new EgressRefused('it did not answer in time');
  const { code } = error as { code?: unknown };
  return new EgressRefused(typeof code === 'string' ? `it cannot be reached (${code})` : 'it cannot be read');
}
