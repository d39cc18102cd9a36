import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import type { Range } from '../lib/ip.ts';
import { makeSlotList } from '../lib/slot-list.ts';
import { readBody } from './body.ts';
import { type Client, countHeader, dropSeveralCredentials, makeClientReader } from './client.ts';
import { makeClientErrors } from './client-error.ts';
import { corsHeaders, type KnowsOrigin } from './cors.ts';
import type { HotHandler, HotReply, HotRequest } from './hot.ts';
import { drainConnections, makeLinger } from './linger.ts';
import { headerText } from './network.ts';
import { errorReply, HSTS_SECONDS } from './reply.ts';
import { literalTarget, originForm, pathOf } from './target.ts';

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
