import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import type { Clock } from '../lib/clock.ts';
import { createSlotList } from '../lib/collections.ts';
import { createUlid, type Random } from '../lib/crypto.ts';
import type { ErrorCode } from '../lib/errors.ts';
import type { AddressRange } from '../lib/ip.ts';
import {
  createClientLimit,
  createConnectionLimit,
  createPipelineLimit,
  drainConnections,
  endLast,
  endSocket,
  isReadingOn,
  requireReader,
} from './connections.ts';
import { corsHeaders, errorReply, HSTS_SECONDS, type KnowsOrigin } from './reply.ts';
import {
  type Client,
  countHeader,
  createClientReader,
  dropSeveralCredentials,
  type HotHandler,
  type HotReply,
  type HotRequest,
  headerText,
  literalTarget,
  originForm,
  pathOf,
  readBody,
} from './request.ts';

/**
 * The HTTP server: reads the facts of each request, runs the direct routes, hands the others to Express,
 * and ends bad connections.
 */

const CLIENT_LEFT = 499;
/** A JSON answer loads nothing and may not be framed. */
const STRICT_CSP = "default-src 'none'; frame-ancestors 'none'";
/** Never set for the operator's other hosts. */
const STRICT_TRANSPORT = `max-age=${HSTS_SECONDS}`;

export interface ServerDeps {
  /** Exact paths that are answered before Express sees the request. */
  readonly lanes: ReadonlyMap<string, HotHandler>;
  readonly express: RequestListener;
  readonly clock: Clock;
  readonly random: Random;
  readonly knowsOrigin: KnowsOrigin;
  readonly trustedProxies: readonly AddressRange[];
  /** GPD_JA4_HEADER in lower case. */
  readonly ja4Header: string | null;
  /** Called when X-Forwarded-For comes from a peer that is not trusted. */
  readonly onUntrustedForwarded: () => void;
  readonly onFault: (requestId: string, error: unknown) => void;
  /** Called after each answer 503. */
  readonly onUnavailable?: (requestId: string) => void;
  /** The public origin is https: every answer sends HSTS. */
  readonly https: boolean;
  readonly tls: TlsOptions | null;
  /** Connections of one client address at a time. */
  readonly maxConnections: number;
  /** Milliseconds in which a client has to read, see `requireReader`. */
  readonly answerTimeoutMs: number;
  /** Called after every answer; the status is 499 for a client that left before its answer. */
  readonly onAnswered?: ((path: string, status: number, seconds: number) => void) | undefined;
}

const createRequestId = ({ clock, random }: ServerDeps): string => `req_${createUlid(clock, random)}`;

/** Set on every request before a handler runs. */
const facts = new WeakMap<IncomingMessage, HotRequest>();

export function requestFacts(request: IncomingMessage): HotRequest {
  const found = facts.get(request);
  if (!found) throw new Error('the request did not come through the server');
  return found;
}

/**
 * @param always names and values in turn, which is cheaper than single calls; none of them is also in `reply`
 */
export function send(response: ServerResponse, reply: HotReply, always: readonly string[] = []): void {
  if (response.headersSent || response.destroyed) return;
  const head = [...always];
  for (const name in reply.headers) head.push(name, reply.headers[name] as string);
  if (reply.status !== 204) head.push('content-length', String(Buffer.byteLength(reply.body)));
  // Set before: by a server that drains.
  const isLast =
    reply.headers['connection'] === 'close' || response.hasHeader('connection') || !response.shouldKeepAlive;
  response.writeHead(reply.status, head);
  if (isLast) endLast(response, reply.body);
  else response.end(reply.body);
}

/** Exactly one Host header is required, and none in HTTP/1.0 (RFC 9112 section 3.2). */
function namesOneHost(request: IncomingMessage): boolean {
  const names = countHeader(request, 'host');
  return names === 1 || (names === 0 && request.httpVersion !== '1.1');
}

/** Bytes of the request line and of all headers. */
function headerBytes({ url = '', rawHeaders }: IncomingMessage): number {
  let bytes = url.length;
  // A colon, a space and the line end.
  for (const part of rawHeaders) bytes += part.length + 2;
  return bytes;
}

/** Null: the request may be served. */
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
    requestId: createRequestId(deps),
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
  hotRequest: HotRequest,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const always = ['X-Request-Id', hotRequest.requestId, 'Content-Security-Policy', STRICT_CSP];
  if (deps.https) always.push('Strict-Transport-Security', STRICT_TRANSPORT);
  try {
    send(response, await lane(hotRequest), always);
  } catch (error) {
    if (request.destroyed && !request.complete) return;
    deps.onFault(hotRequest.requestId, error);
    send(response, errorReply('internal'), always);
  }
}

export type RunningServer = ReturnType<typeof createHttpServer>;

const OPTIONS = {
  /** A slow sender gets 408: the whole request has to arrive within this time. */
  requestTimeout: 10_000,
  headersTimeout: 10_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1000,
  /** More than the server accepts, so that a page with large cookies gets a readable refusal. */
  maxHeaderSize: 65_536,
  insecureHTTPParser: false,
  // The listener refuses instead, with the usual body.
  requireHostHeader: false,
};
/** Limits the request line and all headers; a bearer token takes at most half. */
const MAX_HEADER_BYTES = 16_384;
/** No route accepts a larger body. */
const MAX_CONTINUE_BYTES = 32_768;

function createListener(deps: ServerDeps) {
  let draining = false;
  const open = createSlotList<ServerResponse>();
  const clientErrors = createClientErrors(() => createRequestId(deps));
  const clientOf = createClientReader(deps.trustedProxies);
  const limitPipeline = createPipelineLimit();
  const limitClient = createClientLimit();
  const listener: RequestListener = (request, response) => {
    if (!limitPipeline(response)) return;
    clientErrors.began(response);
    requireReader(response, deps.answerTimeoutMs);
    const target = originForm(request.url ?? '/');
    const path = pathOf(target ?? '');
    const hotRequest = readFacts(deps, clientOf(request), request, target);
    const startedAt = deps.onAnswered ? performance.now() : 0;
    const removeOpen = open.add(response);
    response.once('close', () => {
      removeOpen();
      const status = response.headersSent ? response.statusCode : CLIENT_LEFT;
      deps.onAnswered?.(path, status, (performance.now() - startedAt) / 1000);
      if (status === 503) deps.onUnavailable?.(hotRequest.requestId);
    });
    if (draining) response.setHeader('Connection', 'close');
    const refused = refusalOf(deps, request, target);
    if (refused) {
      send(response, refused, ['X-Request-Id', hotRequest.requestId]);
      return;
    }
    dropSeveralCredentials(request);
    const lane = deps.lanes.get(path);
    if (lane) {
      void runLane(deps, lane, hotRequest, request, response);
      return;
    }
    // A backend may send as much as its key allows.
    if (request.headers.authorization === undefined && !limitClient(hotRequest.limitKey, response)) {
      send(response, errorReply('rate-limited', { 'retry-after': '1' }), [
        'X-Request-Id',
        hotRequest.requestId,
      ]);
      return;
    }
    facts.set(request, hotRequest);
    response.setHeader('X-Request-Id', hotRequest.requestId);
    // Express parses an absolute form with url.parse(), which prints the client's text on stderr.
    request.url = literalTarget(hotRequest.target);
    deps.express(request, response);
  };
  /** Connections close after their pending answers. */
  const closeAfterAnswers = (): void => {
    draining = true;
    for (const response of open.list()) if (!response.headersSent) response.setHeader('Connection', 'close');
  };
  return { listener, clientErrors, closeAfterAnswers };
}

export function createHttpServer(deps: ServerDeps) {
  const { listener, clientErrors, closeAfterAnswers } = createListener(deps);
  const server = deps.tls
    ? createTlsServer({ ...OPTIONS, ...deps.tls }, listener)
    : createServer(OPTIONS, listener);
  // Node silently drops headers past the 2,000th, and a proxy adds its own last. Their bytes are limited
  // instead.
  server.maxHeadersCount = 0;
  server.on('connection', createConnectionLimit(deps.maxConnections, deps.trustedProxies));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
    clientErrors.onError(error, socket),
  );
  // Without a listener Node sends 100 Continue itself, before any limit is checked.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (Number(request.headers['content-length'] ?? 0) <= MAX_CONTINUE_BYTES) response.writeContinue();
    listener(request, response);
  });
  // An unknown Expect value is ignored.
  server.on('checkExpectation', listener);
  return {
    server,
    /** Readiness is false from here on; connections finish their requests, then close. */
    drain(deadlineMs: number) {
      closeAfterAnswers();
      return drainConnections(server, deadlineMs);
    },
  };
}

/**
 * Answers bytes that are not a request, or come too late, like any other refusal: once, and never in place of
 * another answer.
 */

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

function createClientErrors(createRequestId: () => string) {
  const newest = new WeakMap<Socket, Newest>();
  const refused = new WeakSet<Socket>();

  function onBadBody(socket: Socket, response: ServerResponse, code: ErrorCode): void {
    // Each request gets one answer: an early one, or this one.
    if (!response.headersSent) refuse(socket, code, createRequestId());
    else if (response.writableEnded || isReadingOn(socket)) endSocket(socket);
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
