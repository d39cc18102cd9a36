import { ERRORS, type ErrorCode, errorBody } from '../lib/errors.ts';
import type { HotReply } from './hot.ts';

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
  return { status, headers: { ...COMMON, ...headers }, body: JSON.stringify(body) };
}

export function errorReply(
  code: ErrorCode,
  headers: Readonly<Record<string, string>> = {},
  details?: readonly string[],
): HotReply {
  return jsonReply(ERRORS[code][0], errorBody(code, details), headers);
}
