import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { createBounded } from '../lib/collections.ts';
import { Refusal, succeeds, tryOr } from '../lib/errors.ts';
import {
  type Address,
  type AddressRange,
  forwardedHops,
  limitKey,
  networkKey,
  resolveClient,
} from '../lib/ip.ts';
import { parseStrictJson } from '../lib/json.ts';
import { explainIssue } from '../schema/explain-issue.ts';
import { headerName } from '../schema/routes.ts';

/** A request as handlers see it, without Express and `node:http`. */
export interface HttpRequest {
  readonly method: string;
  /** The request target as sent. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  /** The client behind the trust boundary, for limits and for network counts; never stored raw. */
  readonly limitKey: string;
  readonly networkKey: string;
  readonly client: Address | null;
  /** JA4 from a trusted proxy. */
  readonly ja4: string | null;
  readonly https: boolean;
  /** The peer is a trusted proxy, so that its headers about the client are believed. */
  readonly behindProxy: boolean;
  readonly requestId: string;
  /** Reads at most `limit` bytes. Null: there are more. Rejects when the sender disconnects. */
  readBytes(limit: number): Promise<Buffer | null>;
}

/** Charges a key. Resolves to 0, or to the whole seconds to wait. */
export type Limiter = (key: string) => Promise<number>;

/** Counts the lines of a header; `headers` has them joined. */
export function countHeader(request: IncomingMessage, name: string): number {
  const { rawHeaders } = request;
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const rawName = rawHeaders[i] as string;
    if (rawName.length === name.length && rawName.toLowerCase() === name) count += 1;
  }
  return count;
}

export type Client = ReturnType<typeof withKeys>;

function withKeys({ address, ...trust }: ReturnType<typeof resolveClient>) {
  const keys = address
    ? { limitKey: limitKey(address), networkKey: networkKey(address) }
    : { limitKey: 'unknown', networkKey: 'unknown' };
  return { address, ...keys, ...trust };
}

/** Clients return, so the result for a connection's addresses is cached, up to this many. */
const MAX_CLIENTS = 10_000;

export function createClientReader(trusted: readonly AddressRange[]): (request: IncomingMessage) => Client {
  const cache = createBounded<Client>(MAX_CLIENTS);
  return (request) => {
    const peer = request.socket.remoteAddress;
    const forwardedFor = headerText(request.headers, 'x-forwarded-for') ?? undefined;
    const forwarded = headerText(request.headers, 'forwarded') ?? undefined;
    const key = `${peer}|${forwardedFor}|${forwarded}`;
    const found = cache.get(key);
    if (found) return found;
    const client = withKeys(resolveClient(peer, forwardedHops(forwardedFor, forwarded), trusted));
    // A header of kilobytes is not worth caching.
    if (key.length <= 256) cache.set(key, client);
    return client;
  };
}

/**
 * Treats several credentials as no credential, on every route: a proxy may have checked the first or the
 * last.
 */
export function dropSeveralCredentials(request: IncomingMessage): void {
  const { headers } = request;
  if (headers.authorization !== undefined && countHeader(request, 'authorization') > 1) {
    delete headers.authorization;
  }
}

/** The header facts behind the trust boundary that the classifier reads. They are never stored. */
export type NetworkFacts = ReturnType<typeof readNetwork>;

export type HeaderMap = Readonly<Record<string, string | readonly string[] | undefined>>;

/** A header's value as one text, or null. */
export function headerText(headers: HeaderMap, name: string): string | null {
  const value = headers[name];
  if (value === undefined) return null;
  return typeof value === 'string' ? value : value.join(', ');
}

/** The request without its body, as the trust boundary sees it. */
export interface RequestTier extends Pick<HttpRequest, 'https' | 'ja4'> {
  /** With lower-case names, as `node:http` gives them. */
  readonly headers: HeaderMap;
  readonly hosting: boolean | null;
}

export function readNetwork(tier: RequestTier) {
  const { headers, https, ja4, hosting } = tier;
  return {
    userAgent: headerText(headers, 'user-agent'),
    acceptLanguage: headerText(headers, 'accept-language'),
    secChUa: headerText(headers, 'sec-ch-ua'),
    secChUaPlatform: headerText(headers, 'sec-ch-ua-platform'),
    secFetchSite: headerText(headers, 'sec-fetch-site'),
    /** JA4 from a trusted proxy; only its parts a and b are used. */
    ja4,
    https,
    /** True: the client's network belongs to a hosting provider; null: unknown. */
    hosting,
  };
}

/** Accepts `Sec-GPC: 1` only (Global Privacy Control, section 3.2); one of several values is enough. */
export function hasGpcHeader(headers: HeaderMap): boolean {
  const values = headerText(headers, 'sec-gpc')?.split(',') ?? [];
  return values.some((value) => value.trim() === '1');
}

/**
 * Absolute form with an authority, which is ignored: one gpd answers under all its names (RFC 9112 section
 * 3.2).
 */
const ABSOLUTE = /^https?:\/\/[^/?#]+/i;

/**
 * The target as a path with its query; null for a form that a server does not accept (RFC 9112 section 3.2).
 */
export function originForm(target: string): string | null {
  if (target.startsWith('/') || target === '*') return target;
  const absolute = ABSOLUTE.exec(target)?.[0];
  if (absolute === undefined) return null;
  const rest = target.slice(absolute.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

export function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

/**
 * Escapes a path with a malformed percent-escape: Express would refuse it before authentication, and 401
 * comes first (contract section 1).
 */
export function literalTarget(target: string): string {
  const path = pathOf(target);
  if (succeeds(() => decodeURIComponent(path))) return target;
  return path.replaceAll('%', '%25') + target.slice(path.length);
}

/**
 * Values of a cookie, in the order of the header (RFC 6265 section 5.4): a sibling host may have set one too.
 */
export function cookieValues(header: string | undefined, name: string): string[] {
  return (header ?? '').split(';').flatMap((pair) => {
    const at = pair.indexOf('=');
    return at !== -1 && pair.slice(0, at).trim() === name ? [pair.slice(at + 1).trim()] : [];
  });
}

export function cookieNames(header: string | undefined): string[] {
  return (header ?? '').split(';').flatMap((pair) => {
    const at = pair.indexOf('=');
    return at === -1 ? [] : [pair.slice(0, at).trim()];
  });
}

/** Nobody is left to answer, and nothing is wrong here. */
class SenderLeft extends Error {
  override readonly name = 'SenderLeft';
}

/** The client disconnected before its answer, which is not a fault. */
export const hasLeft = (error: unknown): boolean =>
  error instanceof SenderLeft || (error as { code?: unknown } | null)?.code === 'ERR_STREAM_PREMATURE_CLOSE';

/**
 * Reads a body of at most `limit` bytes. Null: it is larger, and the rest stays unread, because draining
 * could mean gigabytes. Rejects with SenderLeft when the sender disconnects.
 */
export function readBody(request: IncomingMessage, limit: number): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= limit) {
        chunks.push(chunk);
        return;
      }
      request.off('data', onData);
      request.pause();
      resolve(null);
    };
    request.on('data', onData);
    request.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    request.on('close', () => {
      if (!request.readableEnded) reject(new SenderLeft('the sender disconnected'));
    });
    // The sender disconnects: `close` follows and rejects.
    request.on('error', () => {});
  });
}

/** Refuses other types and compressed bodies. Node ignores every transfer coding except chunked. */
export function isPlainJson(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  const transfer = headers['transfer-encoding']?.trim().toLowerCase() ?? 'chunked';
  return type === 'application/json' && encoding === 'identity' && transfer === 'chunked';
}

/** Judges Content-Length before a byte of the body is read. */
export function declaresTooMuch(contentLength: string | undefined, limit: number): boolean {
  return contentLength !== undefined && Number(contentLength) > limit;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Names the places that do not match, never a value. */
function detailsOf(error: z.ZodError): string[] {
  return error.issues.slice(0, 10).map((issue) => {
    const path = issue.path.map(String).join('.');
    return path === '' ? issue.message : `${path}: ${issue.message}`;
  });
}

/** @throws {Refusal} `invalid-json`, or `invalid-request` with what to fix */
export function parseBody<Schema extends z.ZodType>(body: Uint8Array, schema: Schema): z.output<Schema> {
  const value = tryOr(() => parseStrictJson(utf8.decode(body)), undefined);
  if (value === undefined) throw new Refusal('invalid-json');
  return parseShape(value, schema);
}

/** @throws {Refusal} `invalid-request` with what to fix */
export function parseShape<Schema extends z.ZodType>(value: unknown, schema: Schema): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  // Parses again to get the words: passing zod an error map would cost every good body 2 µs.
  const { error = parsed.error } = schema.safeParse(value, { error: explainIssue });
  throw new Refusal('invalid-request', { details: detailsOf(error) });
}

/** An optional header. @param name in lower case @throws {Refusal} `invalid-request` */
export function readHeader<Schema extends z.ZodType>(
  headers: IncomingHttpHeaders,
  name: string,
  schema: Schema,
): z.output<Schema> | undefined {
  const parsed = schema.optional().safeParse(headers[name], { error: explainIssue });
  if (parsed.success) return parsed.data;
  const details = parsed.error.issues.map(({ message }) => `${headerName(name)}: ${message}`);
  throw new Refusal('invalid-request', { details });
}
