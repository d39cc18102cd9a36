import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { works } from '../lib/functions.ts';
import { type Address, forwardedHops, limitKey, networkKey, type Range, resolveClient } from '../lib/ip.ts';

/** What a hot-lane handler sees: neither Express nor `node:http`. */
export interface HotRequest {
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
  readonly requestId: string;
  /** Reads at most `limit` bytes. Null: there are more. Rejects when the sender disconnects. */
  readBody(limit: number): Promise<Buffer | null>;
}

export interface HotReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type HotHandler = (request: HotRequest) => Promise<HotReply>;

/** A limiter answers 0, or the whole seconds to wait. */
export type Limiter = (key: string) => Promise<number>;

/** Who asks, behind the trust boundary. */

/** How often a header came; `headers` holds only the first of some. */
export function countHeader(request: IncomingMessage, name: string): number {
  const { rawHeaders } = request;
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const given = rawHeaders[i] as string;
    if (given.length === name.length && given.toLowerCase() === name) count += 1;
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

/** Clients come back; what was worked out for a connection's addresses is kept, so many at most. */
const MAX_CLIENTS = 10_000;

export function makeClientReader(trusted: readonly Range[]): (request: IncomingMessage) => Client {
  const known = new Map<string, Client>();
  return (request) => {
    const peer = request.socket.remoteAddress;
    const forwardedFor = headerText(request.headers, 'x-forwarded-for') ?? undefined;
    const forwarded = headerText(request.headers, 'forwarded') ?? undefined;
    const key = `${peer}|${forwardedFor}|${forwarded}`;
    const found = known.get(key);
    if (found) return found;
    const client = withKeys(resolveClient(peer, forwardedHops(forwardedFor, forwarded), trusted));
    if (known.size >= MAX_CLIENTS) known.clear();
    // A header of kilobytes is not worth its place.
    if (key.length <= 256) known.set(key, client);
    return client;
  };
}

/**
 * Several credentials are as good as none, on every route: Node keeps the first of several Authorization headers, and a
 * proxy may have looked at another.
 */
export function dropSeveralCredentials(request: IncomingMessage): void {
  const { headers } = request;
  if (headers.authorization !== undefined && countHeader(request, 'authorization') > 1) {
    delete headers.authorization;
  }
}

/** The network tier as the classifier sees it: header facts behind the trust boundary. Nothing of it is stored. */
export type NetworkFacts = ReturnType<typeof readNetwork>;

export type HeaderMap = Readonly<Record<string, string | readonly string[] | undefined>>;

/** A header's value as one text, or null. */
export function headerText(headers: HeaderMap, name: string): string | null {
  const value = headers[name];
  if (value === undefined) return null;
  return typeof value === 'string' ? value : value.join(', ');
}

/** What the trust boundary knows of a request apart from its body. */
export interface RequestTier extends Pick<HotRequest, 'https' | 'ja4'> {
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
    /** JA4 as a trusted proxy hands it over; only its parts a and b are looked at. */
    ja4,
    https,
    /** The client's network is one of a hosting provider; null: nobody knows. */
    hosting,
  };
}

/** `Sec-GPC: 1` and nothing else (Global Privacy Control, section 3.2); of several, one is enough to be heard. */
export function hasGpcHeader(headers: HeaderMap): boolean {
  const values = headerText(headers, 'sec-gpc')?.split(',') ?? [];
  return values.some((value) => value.trim() === '1');
}

/** Request targets (RFC 9112 section 3.2): the origin form, the absolute form of a proxy, and the asterisk. */

/** With an authority, which is not looked at: one gpd answers under all its names. */
const ABSOLUTE = /^https?:\/\/[^/?#]+/i;

/** The target as a path with its query; null when it has none of the forms that a server accepts. */
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
 * A path with a malformed percent-escape names nothing, and is used unchanged: Express would refuse it before it is
 * known who asks, and 401 comes first (contract section 1).
 */
export function literalTarget(target: string): string {
  const path = pathOf(target);
  if (works(() => decodeURIComponent(path))) return target;
  return path.replaceAll('%', '%25') + target.slice(path.length);
}

/** Values of a cookie, in the order in which they were sent (RFC 6265 section 5.4): a sibling host may have set one too. */
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

/** Nobody is there to be answered, and nothing is wrong here. */
class SenderLeft extends Error {
  override readonly name = 'SenderLeft';
}

/** The client disconnected before its answer, which is not a fault. */
export const hasLeft = (error: unknown): boolean =>
  error instanceof SenderLeft || (error as { code?: unknown } | null)?.code === 'ERR_STREAM_PREMATURE_CLOSE';

/**
 * Reads a body of at most `limit` bytes; null when there are more, and the rest is left unread (a parser that drains
 * first can be made to read gigabytes). Rejects with
 * SenderLeft when the sender disconnects in the middle.
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
    // A sender that disconnects: `close` follows, and says so.
    request.on('error', () => {});
  });
}
