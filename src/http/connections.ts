import type { Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { type AddressRange, inRanges, limitKey, parseAddress } from '../lib/ip.ts';

/** Connections: how many one client may hold, how long it may take to read, and how a connection ends. */

/** Requests of one connection that wait for their answers; browsers send one at a time. */
const MAX_UNANSWERED = 16;

/**
 * Counts the requests of each connection that wait for their answers.
 * @returns a function that counts a new request, and closes its connection when there are too many. False:
 * the connection is closed, and the request must be dropped
 */
export function createPipelineLimit(): (response: ServerResponse) => boolean {
  const unanswered = new WeakMap<Socket, number>();
  return (response) => {
    const { socket } = response.req;
    // Requests that arrived in one chunk are parsed to its end, even when the connection is closed meanwhile.
    if (socket.destroyed) return false;
    const count = (unanswered.get(socket) ?? 0) + 1;
    unanswered.set(socket, count);
    response.once('close', () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1));
    if (count <= MAX_UNANSWERED) return true;
    socket.destroy();
    return false;
  };
}

/**
 * Requests without a credential that one client has under way; a browser has six a host, an office behind one
 * address some dozens.
 */
const MAX_UNDER_WAY = 100;

/**
 * Counts the requests of each client that wait for their answers, over all its connections: what arrives in
 * one turn of the event loop would hold up all others for as long as all of it takes.
 * @returns a function that counts a new request. False: there are too many, and it has to be refused at once
 */
export function createClientLimit(
  max = MAX_UNDER_WAY,
): (client: string, response: ServerResponse) => boolean {
  const underWay = new Map<string, number>();
  return (client, response) => {
    const count = underWay.get(client) ?? 0;
    if (count >= max) return false;
    underWay.set(client, count + 1);
    response.once('close', () => {
      const remaining = (underWay.get(client) ?? 1) - 1;
      if (remaining > 0) underWay.set(client, remaining);
      else underWay.delete(client);
    });
    return true;
  };
}

/**
 * Closes the connection of a client that does not read its answer: a complete answer has to leave within two
 * periods, and of a stream that is still written something in each. A handler that still works is left alone.
 */
export function requireReader(response: ServerResponse, periodMs: number): void {
  const { socket } = response.req;
  let wasComplete = false;
  let bytesWritten = -1;
  const timer = setInterval(() => {
    const isStalled = socket.writableLength > 0 && socket.bytesWritten === bytesWritten;
    if (wasComplete || isStalled) socket.destroy();
    // An answer that waits behind another one of its connection has no socket yet.
    wasComplete = response.writableEnded && response.socket !== null;
    bytesWritten = socket.bytesWritten;
  }, periodMs).unref();
  response.once('close', () => clearInterval(timer));
}

/**
 * Limits the connections of one address; a listener for new connections. An IPv6 client is its /64. Trusted
 * proxies hold the connections of many clients and have no limit.
 */
export function createConnectionLimit(
  max: number,
  trustedProxies: readonly AddressRange[],
): (socket: Socket) => void {
  const connectionCounts = new Map<string, number>();
  return (socket) => {
    const address = parseAddress(socket.remoteAddress ?? '');
    if (!address || inRanges(address, trustedProxies)) return;
    const key = limitKey(address);
    const count = connectionCounts.get(key) ?? 0;
    if (count >= max) {
      socket.destroy();
      return;
    }
    connectionCounts.set(key, count + 1);
    socket.once('close', () => {
      const remaining = (connectionCounts.get(key) ?? 1) - 1;
      if (remaining > 0) connectionCounts.set(key, remaining);
      else connectionCounts.delete(key);
    });
  };
}

/**
 * Closing a socket with unread bytes resets the connection, and the peer may lose its answer. So gpd closes
 * its half and discards input for a short while, as long as a polite peer needs to notice.
 */

export const LINGER_MS = 1000;
const MAX_BYTES = 16 * 1024 * 1024;
/** Connections above this number are closed at once, so that discarding has a bound. */
const MAX_AT_ONCE = 100;

/**
 * Lingers on new connections; a listener for their event.
 * @param hasUnread the newest request of the connection was answered before it was read completely
 */
export function createLinger(hasUnread: (socket: Socket) => boolean): (socket: Socket) => void {
  let lingering = 0;

  function linger(socket: Socket): void {
    lingering += 1;
    let bytesAllowed = MAX_BYTES;
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => {
      lingering -= 1;
      clearTimeout(timer);
    });
    socket.once('end', () => socket.destroy());
    socket.end();
    // node:http reads below the stream and may have stopped. Its `resume` listener restarts it, before `data`
    // takes the input from the parser, which then sees no further request.
    socket.pause();
    socket.once('resume', () => {
      socket.removeAllListeners('data');
      socket.on('data', (chunk) => {
        bytesAllowed -= chunk.length;
        if (bytesAllowed < 0) socket.destroy();
      });
    });
    socket.resume();
  }

  return (socket) => {
    const destroySoon = socket.destroySoon.bind(socket);
    // node:http calls this when the last answer of a connection is sent.
    socket.destroySoon = () => {
      if (!socket.destroyed && lingering < MAX_AT_ONCE && hasUnread(socket)) linger(socket);
      else destroySoon();
    };
  };
}

/** While the server drains, a connection without a request for this long is closed. */
const SILENT_MS = 1000;

/** Node's default for connections that wait to be accepted. */
const BACKLOG = 511;

const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/**
 * Closing a listener resets connections that the kernel made and nobody accepted; one turn of the loop
 * accepts one.
 */
async function acceptWaiting(server: Server): Promise<void> {
  let accepted = true;
  const note = (): void => {
    accepted = true;
  };
  server.on('connection', note);
  for (let turns = 0; accepted && turns < BACKLOG; turns += 1) {
    accepted = false;
    await turnOfTheLoop();
    await turnOfTheLoop();
  }
  server.off('connection', note);
}

/**
 * Accepts no new connection and waits until all are closed, at the deadline by force. Node's own close()
 * would end idle connections at once, while a balancer may be sending on one.
 */
export async function drainConnections(server: Server, deadlineMs: number): Promise<void> {
  const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
  await acceptWaiting(server);
  // Input that has arrived is read first: a busy loop may be late with it.
  const silent = setTimeout(() => setImmediate(() => server.closeIdleConnections()), SILENT_MS);
  await new Promise<void>((resolve) => void NetServer.prototype.close.call(server, () => resolve()));
  clearTimeout(deadline);
  clearTimeout(silent);
}
