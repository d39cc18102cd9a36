import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { ERRORS, type ErrorCode, errorBody } from '../lib/errors.ts';
import { LINGER_MS } from './linger.ts';

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

export function makeClientErrors(makeRequestId: () => string) {
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
