import { type IncomingHttpHeaders, request } from 'node:http';
import { type RequestOptions, request as requestOverTls } from 'node:https';
import { connect } from 'node:net';

/** An HTTP client for tests that normalises, retries and follows nothing. */

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  json(): unknown;
}

export interface Ask {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
  /** Sends Transfer-Encoding: chunked, without a Content-Length. */
  readonly chunked?: boolean;
  /** Options for a kept connection, TLS, or another local address. */
  readonly by?: Pick<RequestOptions, 'agent' | 'ca' | 'servername' | 'localAddress'>;
}

/** Sends one request, over a new connection unless `by` has an agent. */
export function ask(base: string, path: string, options: Ask = {}): Promise<Reply> {
  const { method = 'GET', body, chunked = false, by = {} } = options;
  const length = body === undefined || chunked ? {} : { 'content-length': Buffer.byteLength(body) };
  const headers = { ...length, ...options.headers } as Record<string, string>;
  // The path is sent unchanged: a URL object would normalise it.
  const { protocol, hostname, port } = new URL(base);
  const send = protocol === 'https:' ? requestOverTls : request;
  return new Promise((resolve, reject) => {
    const outgoing = send({ agent: false, ...by, hostname, port, path, method, headers });
    outgoing.once('error', reject);
    outgoing.once('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () => {
        const text = Buffer.concat(chunks).toString();
        const { statusCode: status = 0, headers: received } = response;
        resolve({ status, headers: received, text, json: () => JSON.parse(text) as unknown });
      });
    });
    if (body !== undefined && chunked) outgoing.write(body);
    outgoing.end(chunked ? undefined : body);
  });
}

export const JSON_TYPE = { 'content-type': 'application/json' } as const;

/** Posts a text or bytes unchanged, and any other value as JSON. */
export function postJson(
  base: string,
  path: string,
  body: unknown,
  headers: Ask['headers'] = {},
): Promise<Reply> {
  const bytes = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  return ask(base, path, { method: 'POST', headers: { ...JSON_TYPE, ...headers }, body: bytes });
}

/** A raw socket, for bytes that no client library would send. */
export interface Wire {
  send(bytes: string | Uint8Array): void;
  /** @returns everything received so far */
  received(): string;
  /** Resolves with everything received as soon as it matches. */
  until(pattern: RegExp): Promise<string>;
  /**
   * Resolves when the other side has closed, with everything
   * received and the milliseconds since the connection.
   */
  readonly closed: Promise<{ readonly text: string; readonly ms: number }>;
  close(): void;
}

export async function openWire(port: number, encoding: BufferEncoding = 'utf8'): Promise<Wire> {
  const socket = connect(port, '127.0.0.1');
  const start = performance.now();
  let text = '';
  const watchers = new Set<() => void>();
  socket.setEncoding(encoding).on('data', (chunk: string) => {
    text += chunk;
    for (const watch of watchers) watch();
  });
  const closed = new Promise<{ text: string; ms: number }>((resolve) => {
    socket.once('close', () => resolve({ text, ms: performance.now() - start }));
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('connect', () => {
      // After the connection a reset is reported by `closed`.
      socket.off('error', reject).on('error', () => {});
      resolve();
    });
  });
  return {
    send: (bytes) => void socket.write(bytes),
    received: () => text,
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const watch = (): void => {
          if (!pattern.test(text)) return;
          watchers.delete(watch);
          resolve(text);
        };
        watchers.add(watch);
        void closed.then(() => reject(new Error(`closed before ${pattern}; received: ${text}`)));
        watch();
      }),
    closed,
    close: () => void socket.destroy(),
  };
}

export interface RawReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Parses the last response in the received text; a 100 Continue may come before it. */
export function lastReply(text: string): RawReply {
  const at = text.lastIndexOf('HTTP/1.1 ');
  const [head = '', ...rest] = text.slice(at).split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  return { status: Number(statusLine.split(' ')[1]), headers, body: rest.join('\r\n\r\n') };
}
