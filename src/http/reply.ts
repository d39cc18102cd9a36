import { channel } from 'node:diagnostics_channel';
import { readFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Response } from 'express';
import { sha256Text } from '../lib/crypto.ts';
import { ERRORS, type ErrorCode, errorBody, OutcomeUnknown, Refusal, Unavailable } from '../lib/errors.ts';
import { preflightAllows } from '../schema/routes.ts';

/** An answer that is written while it is read. */
export interface Stream {
  readonly parts: AsyncIterable<string | Uint8Array>;
  /** The connection of a client that reads for longer is closed. */
  readonly maxMs?: number;
  /** Called once the answer has left, or cannot. */
  readonly onEnd?: () => void;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | Stream;
}
interface TextReply extends Reply {
  readonly body: string;
}

/** One year; only sent when the public origin is https. */
export const HSTS_SECONDS = 31_536_000;

/** Headers that every answer of a JSON route carries. */
const COMMON = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const;

export function jsonReply(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): TextReply {
  return { status, headers: Object.assign({}, COMMON, headers), body: JSON.stringify(body) };
}

/**
 * Adds headers to a reply. It uses Object.assign because a spread makes V8 of Node 20 build a hidden class
 * for each reply in the old generation: a hundred bytes until a full collection.
 */
export function withHeaders(reply: Reply, added: Readonly<Record<string, string>>): Reply {
  return { status: reply.status, headers: Object.assign({}, reply.headers, added), body: reply.body };
}

export function errorReply(
  code: ErrorCode,
  headers: Readonly<Record<string, string>> = {},
  details?: readonly string[],
): TextReply {
  const [status] = ERRORS[code];
  // RFC 9110 section 15.5.2: a 401 must have a challenge.
  const challenge = status === 401 ? { 'www-authenticate': 'Bearer' } : {};
  return jsonReply(status, errorBody(code, details), { ...challenge, ...headers });
}

/** Another method on a known path. @param methods the known ones */
export const methodNotAllowed = (methods: readonly string[]): Refusal =>
  new Refusal('method-not-allowed', { headers: { allow: methods.join(', ') } });

/** 503 with the seconds to wait; it says if the request may have been served. */
export function unavailable(error: Unavailable): Refusal {
  const headers = { 'retry-after': String(error.retryAfterSeconds) };
  const details = ['It may have been done: check before you send it again.'];
  return new Refusal('unavailable', error instanceof OutcomeUnknown ? { headers, details } : { headers });
}

/** Null: a bug, and the caller learns nothing about it. */
export function toRefusal(error: unknown): Refusal | null {
  if (error instanceof Refusal) return error;
  if (error instanceof Unavailable) return unavailable(error);
  // Express and its parsers mark mistakes of the caller with a 4xx status, for instance a bad % escape in the
  // path.
  const status = (error as { status?: unknown } | null)?.status;
  return typeof status === 'number' && status >= 400 && status < 500 ? new Refusal('invalid-request') : null;
}

/** Headers for answers that are open to every origin: they do not depend on the caller. */
export const open = {
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
} as const;

/**
 * True if pages of this origin may read the answer. A preflight cannot know the kid (contract 3.1): an origin
 * of any tenant may.
 */
export type KnowsOrigin = (origin: string) => boolean;

const PREFLIGHT_SECONDS = '600';

/** CORS with credentials for a registered origin, never `*`; `Vary: Origin` on every answer, errors too. */
export function corsHeaders(headers: IncomingHttpHeaders, knowsOrigin: KnowsOrigin): Record<string, string> {
  const { origin } = headers;
  if (origin === undefined || !knowsOrigin(origin)) return { vary: 'Origin' };
  return {
    vary: 'Origin',
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    // Date lets a browser with a wrong clock learn the server's time.
    'access-control-expose-headers': 'X-Request-Id, Retry-After, Date',
  };
}

export function preflightHeaders(
  headers: IncomingHttpHeaders,
  knowsOrigin: KnowsOrigin,
  allow: { readonly methods: string; readonly headers: string },
): Record<string, string> {
  const cors = corsHeaders(headers, knowsOrigin);
  cors['cache-control'] = COMMON['cache-control'];
  if (cors['access-control-allow-origin'] === undefined) return cors;
  return {
    ...cors,
    'access-control-allow-methods': allow.methods,
    'access-control-allow-headers': allow.headers,
    'access-control-max-age': PREFLIGHT_SECONDS,
  };
}

export const INGEST_CORS = preflightAllows('ingest');
export const API_CORS = preflightAllows('api');

/** A file or page that is equal for everyone, raw and compressed: the highest level is paid for once. */
type BuiltFile = Awaited<ReturnType<typeof compressFile>>;

export const FIVE_MINUTES = 'public, max-age=300';
export const FOREVER = 'public, max-age=31536000, immutable';

const compress = promisify(gzip);

async function compressFile(body: Buffer) {
  const gzipped = (await compress(body, { level: 9 })) as Buffer;
  return { body, gzipped, etag: sha256Text(body) };
}

/** @returns a function that makes what `make` returns once per name; a failure is tried again */
export function builtOnce<Arguments extends readonly unknown[]>(
  make: (name: string, ...rest: Arguments) => Promise<Buffer | string>,
) {
  const cache = new Map<string, Promise<BuiltFile>>();
  return (name: string, ...rest: Arguments): Promise<BuiltFile> => {
    const cached = cache.get(name);
    if (cached) return cached;
    const building = make(name, ...rest).then((content) => compressFile(Buffer.from(content)));
    cache.set(name, building);
    building.catch(() => cache.delete(name));
    return building;
  };
}

/** Reads files of one directory, each once, on first use. The caller checks the names. */
export const builtFiles = (directory: URL) =>
  builtOnce((name) =>
    readFile(new URL(name, directory)).catch(() => {
      throw new Refusal('not-found', { details: ['The browser files are not built: run `npm run build`.'] });
    }),
  );

/** Renders a view to a text. */
export const renderText = (response: Response, view: string, values: object): Promise<string> =>
  new Promise((resolve, reject) => {
    response.render(view, values, (error: Error | null, html: string) => {
      if (error) reject(error);
      else resolve(html);
    });
  });

type Values = Readonly<Record<string, unknown>>;

/** Sends a page that depends on nothing of its request: it is rendered once, on first use. */
export function createFixedPage(view: string, cache: string, readValues: () => Values | Promise<Values>) {
  const render = builtOnce(async (_view, response: Response) =>
    renderText(response, view, await readValues()),
  );
  return async (response: Response): Promise<void> =>
    sendBuilt(response, await render(view, response), { type: 'text/html', cache });
}

export function sendBuilt(
  response: Response,
  file: BuiltFile,
  { type, cache }: { readonly type: string; readonly cache: string },
): void {
  const zipped = response.req.acceptsEncodings('gzip', 'identity') === 'gzip';
  response.set({
    'content-type': `${type}; charset=utf-8`,
    'cache-control': cache,
    // A strong tag belongs to one representation (RFC 9110, 8.8.3).
    etag: `"${file.etag}${zipped ? '-gzip' : ''}"`,
    ...(zipped ? { 'content-encoding': 'gzip' } : {}),
  });
  response.vary('Accept-Encoding').send(zipped ? file.gzipped : file.body);
}

/**
 * Refusals that suggest a wrong setup: the caller sees a code, and the log and the metrics show the operator
 * the same.
 */
export type NotedRefusal = 'unknown-origin' | 'unknown-kid' | 'unknown-key' | 'secret-key-in-page';

/** Diagnostics channel for these refusals; the log subscribes. */
export const REFUSED = 'gpd.refused';
const refused = channel(REFUSED);
/** @param value an origin, a kid or the public prefix of a key, as the request had it; never a secret */
export const noteRefusal = (kind: NotedRefusal, value: string): void => refused.publish({ kind, value });
/** The kind of a key is public. @returns '' for what is no key of gpd */
export const keyPrefix = (token: string): string => /^gpd_[a-z]{2}_/.exec(token)?.[0] ?? '';
