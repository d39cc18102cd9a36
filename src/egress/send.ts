import { type IncomingMessage, request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { SECOND } from '../lib/clock.ts';
import { type AllowAddress, checkLiteralHost, EgressRefused, guardedLookup, publicOnly } from './guard.ts';

/** Sends requests to addresses that the operator did not choose; nothing else may. */

export interface SendOptions {
  readonly method?: string;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  readonly allow: AllowAddress;
  /** Addresses that may be called over plain http; null: none. */
  readonly allowPlain: AllowAddress | null;
  /** Further certificate authorities, for a server inside the operator's perimeter. */
  readonly ca?: string | undefined;
}

export const anywhere: AllowAddress = () => true;
export const onlyLoopback: AllowAddress = (address) => address.range() === 'loopback';

/** Redirects are not followed. @throws {EgressRefused} before a byte is sent */
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

/** @throws {EgressRefused} when the body is larger */
export async function readBody(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new EgressRefused('the document is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * A {@link call} with a time limit; `read` reads the answer or leaves it.
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

export interface FetchOptions extends Partial<Pick<SendOptions, 'allow' | 'ca'>> {
  /** The media type in Accept that the answer must have; null accepts any JSON type. */
  readonly mediaType: string | null;
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Accepts http too, but only from this machine. */
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
 * GETs a JSON document over https: status 200, the right media type, no redirect, a limit of size and time,
 * and public addresses only unless `allow` permits others.
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

const post = (body: string, headers: Readonly<Record<string, string>>) => ({
  method: 'POST',
  headers: { ...headers, 'content-length': Buffer.byteLength(body), 'user-agent': 'gpd' },
  body,
  signal: AbortSignal.timeout(10 * SECOND),
});

/**
 * POSTs a delivery without reading the answer's body or following redirects. With `allowPrivate` the operator
 * permits an address inside the perimeter, plain http included.
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
  const delivery = post(body, { ...headers, 'content-type': 'application/json' });
  const allow = target.allowPrivate ? anywhere : publicOnly;
  return call(url, { ...delivery, allow, allowPlain: anywhere }, ({ statusCode }) => statusCode ?? 0);
}

const MAX_COSIGNATURES_BYTES = 16_384;

/**
 * Asks a witness of the operator for its cosignature: https anywhere, plain http only inside the perimeter.
 * @throws {EgressRefused} with a reason that quotes nothing of the answer
 */
export async function addCheckpoint(prefix: string, body: string) {
  const allowPlain: AllowAddress = (address) => !publicOnly(address);
  const options = { ...post(body, {}), allow: anywhere, allowPlain };
  return call(`${prefix}/add-checkpoint`, options, async (response) => ({
    status: response.statusCode ?? 0,
    text: (await readBody(response, MAX_COSIGNATURES_BYTES)).toString(),
  }));
}
