import { ERRORS, type ErrorCode, errorBody, OutcomeUnknown, Refusal, Unavailable } from '../lib/errors.ts';
import type { HotReply } from './hot.ts';

/** A year, where the public origin is https. */
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
): HotReply {
  return { status, headers: Object.assign({}, COMMON, headers), body: JSON.stringify(body) };
}

/**
 * The reply with more headers. Object.assign, because a spread that adds a key makes V8 of Node 20 build a new hidden
 * class each time, in the old generation: a hundred bytes an answer that wait for a full collection.
 */
export function withHeaders(reply: HotReply, more: Readonly<Record<string, string>>): HotReply {
  return { status: reply.status, headers: Object.assign({}, reply.headers, more), body: reply.body };
}

export function errorReply(
  code: ErrorCode,
  headers: Readonly<Record<string, string>> = {},
  details?: readonly string[],
): HotReply {
  const [status] = ERRORS[code];
  // RFC 9110 section 15.5.2: a 401 must have a challenge.
  const challenge = status === 401 ? { 'www-authenticate': 'Bearer' } : {};
  return jsonReply(status, errorBody(code, details), { ...challenge, ...headers });
}

/** What is answered at the concurrency limit: a second later there is a place again, or the server is too small. */
export const fullReply = (): HotReply => errorReply('unavailable', { 'retry-after': '1' });

/** 503 with the seconds to wait; it says so when the request may have been served. */
export function unavailable(error: Unavailable): Refusal {
  const headers = { 'retry-after': String(error.retryAfterSeconds) };
  const details = ['It may have been done: check before you send it again.'];
  return new Refusal('unavailable', error instanceof OutcomeUnknown ? { headers, details } : { headers });
}

/** Null: a bug, and the caller learns nothing more. */
export function toRefusal(error: unknown): Refusal | null {
  if (error instanceof Refusal) return error;
  if (error instanceof Unavailable) return unavailable(error);
  // Express and its parsers mark what the caller did wrong by a 4xx status, for instance a bad % escape in the path.
  const status = (error as { status?: unknown } | null)?.status;
  return typeof status === 'number' && status >= 400 && status < 500 ? new Refusal('invalid-request') : null;
}
