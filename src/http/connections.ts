import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorCode } from '../lib/errors.ts';
import { type AddressRange, inRanges, limitKey, parseAddress } from '../lib/ip.ts';
import { errorReply } from './reply.ts';

/** Connections: how many one client may hold, how long it may take to read, and how a connection ends. */

/** Requests of one connection that wait for their answers; browsers send one at a time. */
const MAX_UNANSWERED = 16;

/**
 * Counts the requests of each connection that wait for their answers.
 * @returns a function that counts a new request, and closes its connection when there are too many. It
 * returns a function to call when the answer is closed; null: the request must be dropped
 */
export function createPipelineLimit(): (response: ServerResponse) => (() => void) | null {
  const unanswered = new WeakMap<Socket, number>();
  return (response) => {
    const { socket } = response.req;
    // Requests that arrived in one chunk are parsed to its end, even when the connection is closed meanwhile.
    if (socket.destroyed || readingOn.has(socket)) return null;
    const count = (unanswered.get(socket) ?? 0) + 1;
    unanswered.set(socket, count);
    if (count <= MAX_UNANSWERED) return () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1);
    socket.destroy();
    return null;
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
 * @returns a function to call when the answer is closed
 */
export function requireReader(response: ServerResponse, periodMs: number): () => void {
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
  return () => clearInterval(timer);
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
 * After an early answer gpd reads on for this long and this much; a polite peer notices the answer meanwhile.
 */
const READ_ON_MS = 1000;
const READ_ON_BYTES = 16 * 1024 * 1024;
/** Connections above this number are closed at once, so that reading on has a bound. */
const MAX_READING_ON = 100;

/**
 * Connections that close after an answer whose request has not arrived whole. What follows on them is no
 * request.
 */
const readingOn = new Set<Socket>();

/** Reads and drops what comes of a request, up to a bound of time and of bytes. */
export function readOn(request: IncomingMessage): Promise<void> {
  const { socket } = request;
  if (request.complete || socket.destroyed || readingOn.size >= MAX_READING_ON) return Promise.resolve();
  readingOn.add(socket);
  socket.once('close', () => readingOn.delete(socket));
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, READ_ON_MS);
    let bytesLeft = READ_ON_BYTES;
    const onData = (chunk: Buffer): void => {
      bytesLeft -= chunk.length;
      if (bytesLeft < 0) resolve();
    };
    for (const event of ['end', 'close'])
      request.once(event, () => {
        clearTimeout(timer);
        resolve();
      });
    request.on('data', onData).resume();
  });
}

/**
 * Ends the last answer of a connection. To close a socket with unread bytes resets the connection, and the
 * peer may lose the answer: so the whole answer leaves first, and gpd reads on before it closes.
 */
export function endLast(response: ServerResponse, body: string | Uint8Array): void {
  if (response.req.complete) {
    response.end(body);
    return;
  }
  response.write(body);
  void readOn(response.req).then(() => response.end());
}

/** Ends a connection that node:http has given up; its input is ignored until the peer has noticed. */
function endSocket(socket: Socket, text = ''): void {
  socket.end(text);
  setTimeout(() => socket.destroy(), READ_ON_MS).unref();
}

const CODES: Readonly<Record<string, ErrorCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout',
  HPE_HEADER_OVERFLOW: 'headers-too-large',
};

/** The newest answer of a connection. Pipelined answers come in the order of requests. */
interface Newest {
  readonly response: ServerResponse;
  readonly before: ServerResponse | null;
}

function refuse(socket: Socket, code: ErrorCode, requestId: string): void {
  const { status, headers, body } = errorReply(code, { connection: 'close', 'x-request-id': requestId });
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  endSocket(socket, `${head.join('\r\n')}\r\n\r\n${body}`);
}

function afterwards(response: ServerResponse | null, next: () => void): void {
  if (response && !response.writableFinished) response.once('finish', next);
  else next();
}

/**
 * Answers bytes that are not a request, or come too late, like any other refusal: once, and never in place of
 * another answer.
 */
export function createClientErrors(createRequestId: () => string) {
  const newest = new WeakMap<Socket, Newest>();
  const refused = new WeakSet<Socket>();

  function onBadBody(socket: Socket, response: ServerResponse, code: ErrorCode): void {
    // Each request gets one answer: an early one, or this one.
    if (!response.headersSent) refuse(socket, code, createRequestId());
    else if (response.writableEnded || readingOn.has(socket)) endSocket(socket);
    else socket.destroy();
  }

  return {
    /** Called with the newest request of its connection. */
    began(response: ServerResponse) {
      const { socket } = response.req;
      const before = newest.get(socket)?.response ?? null;
      newest.set(socket, { response, before: before?.writableFinished === true ? null : before });
    },
    onError(error: NodeJS.ErrnoException, socket: Socket) {
      if (!socket.writable || error.code === 'ECONNRESET') {
        socket.destroy();
        return;
      }
      // The parser fails again with every byte that follows.
      if (refused.has(socket)) return;
      refused.add(socket);
      const code = CODES[error.code ?? ''] ?? 'invalid-request';
      const { response, before = null } = newest.get(socket) ?? {};
      if (!response) refuse(socket, code, createRequestId());
      else if (response.req.complete) afterwards(response, () => refuse(socket, code, createRequestId()));
      else afterwards(before, () => onBadBody(socket, response, code));
    },
  };
}

/**
 * A server that drains still takes connections for this long, and closes those without a request after it.
 */
const QUIET_MS = 1000;

/**
 * Connections that wait to be accepted. Past them the kernel drops a SYN, and the client tries again after 1,
 * 3 and 7 seconds. Node's default is 511, also for the socket of a unit; Linux lowers it to
 * net.core.somaxconn.
 */
export const BACKLOG = 4096;

const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const connectionCount = (server: Server): Promise<number> =>
  new Promise((resolve) => void server.getConnections((_error, count) => resolve(count)));

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
 * Waits until all connections are closed, at the deadline by force. Node's close() ends idle connections at
 * once, while a balancer may be sending on one: so the listener stays open until none is left, or for a
 * moment in which each that is used gets its last answer.
 */
export async function drainConnections(server: Server, deadlineMs: number): Promise<void> {
  const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
  await acceptWaiting(server);
  const quietUntil = performance.now() + Math.min(QUIET_MS, deadlineMs);
  while (performance.now() < quietUntil && (await connectionCount(server)) > 0)
    await new Promise((resolve) => void setTimeout(resolve, 20));
  // Input that has arrived is read first: a busy loop may be late with it.
  await acceptWaiting(server);
  await new Promise<void>((resolve) => void server.close(() => resolve()));
  clearTimeout(deadline);
}
