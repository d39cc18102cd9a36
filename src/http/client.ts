import type { IncomingMessage } from 'node:http';
import { forwardedHops, limitKey, networkKey, type Range, resolveClient } from '../lib/ip.ts';
import { headerText } from './network.ts';

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
