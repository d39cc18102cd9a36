import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { TlsOptions } from 'node:tls';
import type { Clock } from '../lib/clock.ts';
import { createSlotList } from '../lib/collections.ts';
import { createUlid, type Random } from '../lib/crypto.ts';
import type { AddressRange } from '../lib/ip.ts';
import {
  createClientErrors,
  createClientLimit,
  createConnectionLimit,
  createPipelineLimit,
  drainConnections,
  endLast,
  requireReader,
} from './connections.ts';
import { createProtection } from './protection.ts';
import { corsHeaders, errorReply, type KnowsOrigin, type Reply, type Stream } from './reply.ts';
import {
  type Client,
  countHeader,
  createClientReader,
  dropSeveralCredentials,
  type HttpRequest,
  hasLeft,
  headerText,
  literalTarget,
  originForm,
  pathOf,
  readBody,
} from './request.ts';
import type { FoundPlace, HandOver, RouteTable } from './routes.ts';

/**
 * The HTTP server: reads the facts of each request, asks the table of routes, and hands pages over to
 * Express.
 */

const CLIENT_LEFT = 499;

export interface ServerDeps {
  readonly routes: RouteTable;
  /** Answers what the table hands over. */
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

/** Set on every request that Express gets: its facts, and what it shall answer as an error. */
const facts = new WeakMap<IncomingMessage, HttpRequest & Pick<HandOver, 'error'>>();

export function requestFacts(request: IncomingMessage) {
  const found = facts.get(request);
  if (!found) throw new Error('the request did not come through the server');
  return found;
}

/** Writes a stream. A client that reads too slowly is cut off. */
async function sendStream(response: ServerResponse, { parts, maxMs }: Stream): Promise<void> {
  const deadline = maxMs === undefined ? undefined : setTimeout(() => response.destroy(), maxMs);
  await pipeline(Readable.from(parts), response).finally(() => clearTimeout(deadline));
}

/**
 * Sends a reply, once.
 * @param always names and values in turn, which is cheaper than single calls; none of them is also in `reply`
 */
export async function send(
  response: ServerResponse,
  { status, headers, body }: Reply,
  always: readonly string[] = [],
): Promise<void> {
  const stream = typeof body === 'string' || body instanceof Uint8Array ? null : body;
  try {
    if (response.headersSent || response.destroyed) return;
    const head = [...always];
    for (const name in headers) head.push(name, headers[name] as string);
    if (!stream && status !== 204) head.push('content-length', String(Buffer.byteLength(body as string)));
    // A server that drains has set it before.
    const isLast =
      headers['connection'] === 'close' || response.hasHeader('connection') || !response.shouldKeepAlive;
    response.writeHead(status, head);
    if (stream && response.req.method !== 'HEAD') await sendStream(response, stream);
    else if (isLast && !stream) endLast(response, body as string | Uint8Array);
    else response.end(stream ? undefined : body);
  } finally {
    stream?.onEnd?.();
  }
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
function refusalOf(deps: ServerDeps, request: IncomingMessage, target: string | null): Reply | null {
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
    behindProxy: client.behindProxy,
    https: encrypted || proxied('x-forwarded-proto') === 'https',
    readBytes: (limit: number) => readBody(request, limit),
  };
}

async function serve(
  deps: ServerDeps & { readonly protection: ReturnType<typeof createProtection> },
  found: FoundPlace | null,
  httpRequest: HttpRequest,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answered = await deps.routes.answer(found, httpRequest);
  const isHot = found?.place.isHot === true;
  if ('status' in answered) {
    const protection = deps.protection.of(answered, isHot);
    await send(response, answered, ['X-Request-Id', httpRequest.requestId, ...protection]);
    return;
  }
  if (!isHot) deps.protection.set(response);
  facts.set(request, { ...httpRequest, error: answered.error });
  response.setHeader('X-Request-Id', httpRequest.requestId);
  for (const name in answered.headers) response.setHeader(name, answered.headers[name] as string);
  // Express parses an absolute form with url.parse(), which prints the client's text on stderr.
  request.url = literalTarget(httpRequest.target);
  deps.express(request, response);
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
  // A signature covers all lines of a header (RFC 9421 section 2.1), and Node drops later ones of some.
  joinDuplicateHeaders: true,
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
  const served = { ...deps, protection: createProtection(deps.https) };
  const listener: RequestListener = (request, response) => {
    const noteAnswered = limitPipeline(response);
    if (!noteAnswered) return;
    clientErrors.began(response);
    const stopReader = requireReader(response, deps.answerTimeoutMs);
    const target = originForm(request.url ?? '/');
    const path = pathOf(target ?? '');
    const httpRequest = readFacts(deps, clientOf(request), request, target);
    const startedAt = deps.onAnswered ? performance.now() : 0;
    const removeOpen = open.add(response);
    // One listener for all: a stream adds seven, and Node warns on stderr of the eleventh.
    response.once('close', () => {
      noteAnswered();
      stopReader();
      removeOpen();
      const status = response.headersSent ? response.statusCode : CLIENT_LEFT;
      deps.onAnswered?.(path, status, (performance.now() - startedAt) / 1000);
      if (status === 503) deps.onUnavailable?.(httpRequest.requestId);
    });
    if (draining) response.setHeader('Connection', 'close');
    const refused = refusalOf(deps, request, target);
    if (refused) {
      void send(response, refused, ['X-Request-Id', httpRequest.requestId]);
      return;
    }
    dropSeveralCredentials(request);
    const found = deps.routes.find(path);
    // A backend may send as much as its key allows.
    const isCounted = request.headers.authorization === undefined && found?.place.isUnbounded !== true;
    if (isCounted && !limitClient(httpRequest.limitKey, response)) {
      void send(response, errorReply('rate-limited', { 'retry-after': '1' }), [
        'X-Request-Id',
        httpRequest.requestId,
      ]);
      return;
    }
    serve(served, found, httpRequest, request, response).catch((error: unknown) => {
      if (!hasLeft(error)) deps.onFault(httpRequest.requestId, error);
      response.destroy();
    });
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
