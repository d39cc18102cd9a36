import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { Server as NetServer, type Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { makeSlotList } from '../lib/collections.ts';
import { ERRORS, type ErrorCode, errorBody } from '../lib/errors.ts';
import type { Range } from '../lib/ip.ts';
import { corsHeaders, errorReply, HSTS_SECONDS, type KnowsOrigin } from './reply.ts';
import {
  type Client,
  countHeader,
  dropSeveralCredentials,
  type HotHandler,
  type HotReply,
  type HotRequest,
  headerText,
  literalTarget,
  makeClientReader,
  originForm,
  pathOf,
  readBody,
} from './request.ts';

const CLIENT_LEFT = 499;
/** An answer in JSON loads nothing and may not be framed. */
const NOTHING = "default-src 'none'; frame-ancestors 'none'";
/** Never for the operator's other hosts. */
const STRICT_TRANSPORT = `max-age=${HSTS_SECONDS}`;

export interface ServerDeps {
  /** Exact paths that are answered before Express sees the request. */
  readonly lanes: ReadonlyMap<string, HotHandler>;
  readonly express: RequestListener;
  readonly makeRequestId: () => string;
  readonly knowsOrigin: KnowsOrigin;
  readonly trustedProxies: readonly Range[];
  /** GPD_JA4_HEADER in lower case. */
  readonly ja4Header: string | null;
  /** X-Forwarded-For came from a peer that is not trusted. */
  readonly onUntrustedForwarded: () => void;
  readonly onFault: (requestId: string, error: unknown) => void;
  /** The public origin is https: said on every answer. */
  readonly https: boolean;
  readonly tls: TlsOptions | null;
  /** Told of every answer that ended; 499 for a client that left before there was one. */
  readonly onAnswered?: ((path: string, status: number, seconds: number) => void) | undefined;
}

/** Set on every request before a handler runs. */
const facts = new WeakMap<IncomingMessage, HotRequest>();

export function requestFacts(request: IncomingMessage): HotRequest {
  const found = facts.get(request);
  if (!found) throw new Error('the request did not come through the server');
  return found;
}

/** @param always names and values in turn, which costs less than setting one after the other; none is in `reply` as well */
function send(response: ServerResponse, reply: HotReply, always: readonly string[]): void {
  if (response.headersSent || response.destroyed) return;
  const head = [...always];
  for (const name in reply.headers) head.push(name, reply.headers[name] as string);
  if (reply.status !== 204) head.push('content-length', String(Buffer.byteLength(reply.body)));
  response.writeHead(reply.status, head);
  response.end(reply.body);
}

/** RFC 9112 section 3.2: exactly one, and none is needed in HTTP/1.0. */
function namesOneHost(request: IncomingMessage): boolean {
  const names = countHeader(request, 'host');
  return names === 1 || (names === 0 && request.httpVersion !== '1.1');
}

/** With the request line, as they came: names and values in turn. */
function headerBytes({ url = '', rawHeaders }: IncomingMessage): number {
  let bytes = url.length;
  // A colon, a blank and the end of the line.
  for (const part of rawHeaders) bytes += part.length + 2;
  return bytes;
}

/** Null where the request may be served. */
function refusalOf(deps: ServerDeps, request: IncomingMessage, target: string | null): HotReply | null {
  const closing = { connection: 'close' };
  if (headerBytes(request) > MAX_HEADER_BYTES)
    return errorReply('headers-too-large', { ...closing, ...corsHeaders(request.headers, deps.knowsOrigin) });
  return target === null || !namesOneHost(request) ? errorReply('invalid-request', closing) : null;
}

function readFacts(deps: ServerDeps, client: Client, request: IncomingMessage, target: string | null) {
  const { socket } = request;
  if (client.untrustedForwarded) deps.onUntrustedForwarded();
  const encrypted = 'encrypted' in socket && socket.encrypted === true;
  const proxied = (name: string): string | null =>
    client.behindProxy ? headerText(request.headers, name) : null;
  return {
    method: request.method ?? 'GET',
    target: target ?? '/',
    headers: request.headers,
    requestId: deps.makeRequestId(),
    limitKey: client.limitKey,
    client: client.address,
    networkKey: client.networkKey,
    ja4: deps.ja4Header === null ? null : proxied(deps.ja4Header),
    https: encrypted || proxied('x-forwarded-proto') === 'https',
    readBody: (limit: number) => readBody(request, limit),
  };
}

async function runLane(
  deps: ServerDeps,
  lane: HotHandler,
  known: HotRequest,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const always = ['X-Request-Id', known.requestId, 'Content-Security-Policy', NOTHING];
  if (deps.https) always.push('Strict-Transport-Security', STRICT_TRANSPORT);
  try {
    send(response, await lane(known), always);
  } catch (error) {
    if (request.destroyed && !request.complete) return;
    deps.onFault(known.requestId, error);
    send(response, errorReply('internal'), always);
  }
}

export type RunningServer = ReturnType<typeof makeServer>;

const OPTIONS = {
  /** Slow senders get 408: the whole request has to be there within this time. */
  requestTimeout: 10_000,
  headersTimeout: 10_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1000,
  /** More than is served, so that a page whose site has large cookies reads why it is not. */
  maxHeaderSize: 65_536,
  insecureHTTPParser: false,
  // Refused in the listener, in the words of every other refusal.
  requireHostHeader: false,
};
/** Of the request line and all headers; a bearer token takes at most half. */
const MAX_HEADER_BYTES = 16_384;
/** Larger bodies are never asked for: every route's limit is at most this. */
const MAX_CONTINUE_BYTES = 32_768;

function makeListener(deps: ServerDeps) {
  let draining = false;
  const open = makeSlotList<ServerResponse>();
  const clientErrors = makeClientErrors(deps.makeRequestId);
  const clientOf = makeClientReader(deps.trustedProxies);
  const listener: RequestListener = (request, response) => {
    clientErrors.began(response);
    const target = originForm(request.url ?? '/');
    const path = pathOf(target ?? '');
    const begun = deps.onAnswered ? performance.now() : 0;
    const ended = open.add(response);
    response.once('close', () => {
      ended();
      const status = response.headersSent ? response.statusCode : CLIENT_LEFT;
      deps.onAnswered?.(path, status, (performance.now() - begun) / 1000);
    });
    const known = readFacts(deps, clientOf(request), request, target);
    if (draining) response.setHeader('Connection', 'close');
    const refused = refusalOf(deps, request, target);
    if (refused) {
      send(response, refused, ['X-Request-Id', known.requestId]);
      return;
    }
    dropSeveralCredentials(request);
    const lane = deps.lanes.get(path);
    if (lane) {
      void runLane(deps, lane, known, request, response);
      return;
    }
    facts.set(request, known);
    response.setHeader('X-Request-Id', known.requestId);
    // Express parses an absolute form by url.parse(), which warns on stderr in the stranger's own words.
    request.url = literalTarget(known.target);
    deps.express(request, response);
  };
  /** Answers that are still to come close their connections. */
  const closeAfterAnswers = (): void => {
    draining = true;
    for (const response of open.list()) if (!response.headersSent) response.setHeader('Connection', 'close');
  };
  return { listener, clientErrors, closeAfterAnswers };
}

export function makeServer(deps: ServerDeps) {
  const { listener, clientErrors, closeAfterAnswers } = makeListener(deps);
  const server = deps.tls
    ? createTlsServer({ ...OPTIONS, ...deps.tls }, listener)
    : createServer(OPTIONS, listener);
  // Node drops headers past the 2,000th without a word, and what a proxy adds stands last. Their bytes are limited.
  server.maxHeadersCount = 0;
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
    clientErrors.onError(error, socket),
  );
  server.on(
    deps.tls ? 'secureConnection' : 'connection',
    makeLinger((socket) => clientErrors.hasUnread(socket)),
  );
  // Without a listener Node answers 100 Continue itself, before any limit is checked.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (Number(request.headers['content-length'] ?? 0) <= MAX_CONTINUE_BYTES) response.writeContinue();
    listener(request, response);
  });
  // An Expect that nobody knows is no reason not to answer.
  server.on('checkExpectation', listener);
  return {
    server,
    /** Readiness is false from here on; connections finish what they began, then close. */
    drain(deadlineMs: number) {
      closeAfterAnswers();
      return drainConnections(server, deadlineMs);
    },
  };
}

/**
 * Closing on bytes that nobody read resets the connection, and the peer may lose the answer it was sent. So our half is
 * closed, and what still comes is thrown away for a short while: no more than a polite peer needs to notice.
 */

const LINGER_MS = 1000;
const MAX_BYTES = 16 * 1024 * 1024;
/** More at once are closed as they are: reading for nothing has a bound. */
const MAX_AT_ONCE = 100;

/**
 * For the listener of new connections.
 * @param hasUnread the newest request of the connection was answered before all of it was read
 */
function makeLinger(hasUnread: (socket: Socket) => boolean): (socket: Socket) => void {
  let lingering = 0;

  function linger(socket: Socket): void {
    lingering += 1;
    let left = MAX_BYTES;
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => {
      lingering -= 1;
      clearTimeout(timer);
    });
    socket.once('end', () => socket.destroy());
    socket.end();
    // node:http reads the handle past the stream, and may have stopped: its own listener of `resume` starts it again, before
    // `data` takes it from the parser. Which hears nothing of what follows: a request behind is not one.
    socket.pause();
    socket.once('resume', () => {
      socket.removeAllListeners('data');
      socket.on('data', (chunk) => {
        left -= chunk.length;
        if (left < 0) socket.destroy();
      });
    });
    socket.resume();
  }

  return (socket) => {
    const destroySoon = socket.destroySoon.bind(socket);
    // What node:http calls when the last answer of a connection is out.
    socket.destroySoon = () => {
      if (!socket.destroyed && lingering < MAX_AT_ONCE && hasUnread(socket)) linger(socket);
      else destroySoon();
    };
  };
}

/** A kept connection that says nothing for so long while the server drains is closed; an answer closes its own. */
const SILENT_MS = 1000;

/** Node's default for how many connections may wait to be accepted. */
const BACKLOG = 511;

const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Closing a listener resets the connections that the kernel has made and nobody has accepted; a turn of the loop accepts one. */
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
 * Takes nobody new and waits until every connection is closed, at the deadline by force.
 * Not http's own close(), which ends idle connections at once: a balancer may be sending on one of them.
 */
async function drainConnections(server: Server, deadlineMs: number): Promise<void> {
  const deadline = setTimeout(() => server.closeAllConnections(), deadlineMs);
  await acceptWaiting(server);
  // After what has arrived was read: a busy loop may be late with it.
  const silent = setTimeout(() => setImmediate(() => server.closeIdleConnections()), SILENT_MS);
  await new Promise<void>((resolve) => void NetServer.prototype.close.call(server, () => resolve()));
  clearTimeout(deadline);
  clearTimeout(silent);
}

/** Bytes that are no request, or not in time: told in the same words, once, and never in the place of another answer. */

const CODES: Readonly<Record<string, ErrorCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout',
  HPE_HEADER_OVERFLOW: 'headers-too-large',
};

/** The newest answer of a connection. Pipelined: answers come in the order of requests. */
interface Newest {
  readonly response: ServerResponse;
  readonly before: ServerResponse | null;
}

function refuse(socket: Socket, code: ErrorCode, requestId: string): void {
  const body = JSON.stringify(errorBody(code));
  const head = [
    `HTTP/1.1 ${ERRORS[code][0]} ${STATUS_CODES[ERRORS[code][0]]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

function afterwards(response: ServerResponse | null, next: () => void): void {
  if (response && !response.writableFinished) response.once('finish', next);
  else next();
}

function makeClientErrors(makeRequestId: () => string) {
  const newest = new WeakMap<Socket, Newest>();
  const refused = new WeakSet<Socket>();

  function onBadBody(socket: Socket, response: ServerResponse, code: ErrorCode): void {
    // One answer for one request: early, or now.
    if (!response.headersSent) refuse(socket, code, makeRequestId());
    else if (response.writableEnded) socket.destroySoon();
    else socket.destroy();
  }

  return {
    /** The newest request of its connection. */
    began(response: ServerResponse) {
      const { socket } = response.req;
      const before = newest.get(socket)?.response ?? null;
      newest.set(socket, { response, before: before?.writableFinished === true ? null : before });
    },
    /** Not all of it has arrived, or was read. */
    hasUnread: (socket: Socket) => newest.get(socket)?.response.req.complete === false,
    onError(error: NodeJS.ErrnoException, socket: Socket) {
      if (!socket.writable || error.code === 'ECONNRESET') {
        socket.destroy();
        return;
      }
      // The parser continues to fail with every byte that follows.
      if (refused.has(socket)) return;
      refused.add(socket);
      const code = CODES[error.code ?? ''] ?? 'invalid-request';
      const { response, before = null } = newest.get(socket) ?? {};
      if (!response) refuse(socket, code, makeRequestId());
      else if (response.req.complete) afterwards(response, () => refuse(socket, code, makeRequestId()));
      else afterwards(before, () => onBadBody(socket, response, code));
    },
  };
}
