import { expect } from 'vitest';
import { ERRORS, type ErrorCode } from '../../src/lib/errors.ts';
import {
  INGEST_STATUS,
  type IngestReason,
  type IngestResponse,
  ingestResponseSchema,
} from '../../src/schema/responses.ts';
import type { Ask, Reply } from './http.ts';
import { postJson } from './http.ts';
import { browserHeaders } from './samples.ts';

/** Requests to the ingest route, and the checks that every answer of it must pass. */

export const INGEST = '/_fp/i/v1';
const COOKIE =
  /^gp_session=([A-Za-z0-9_-]{43}(?:\.[A-Za-z0-9_-]{0,43})?); HttpOnly; Secure; SameSite=Strict; Path=\/; Max-Age=2592000$/;
export const REQUEST_ID = /^req_[0-9A-HJKMNP-TV-Z]{26}$/;

/**
 * Options for `vi.waitFor`. A running server sees a change
 * by a command within 5 s; a busy machine needs longer.
 */
export const SEEN_WITHIN = { timeout: 60_000, interval: 20 } as const;

/** Posts to the ingest route with the headers of a browser; `headers` override them. */
export function post(base: string, body: unknown, headers: Ask['headers'] = {}): Promise<Reply> {
  return postJson(base, INGEST, body, { ...browserHeaders(), ...headers });
}

/** Checks that the answer sets exactly the session cookie. @returns its value */
export function sessionOf(reply: Reply): string {
  const cookies = reply.headers['set-cookie'] ?? [];
  expect(cookies).toHaveLength(1);
  expect(cookies[0]).toMatch(COOKIE);
  return COOKIE.exec(cookies[0] ?? '')?.[1] ?? '';
}

/**
 * Checks that the answer is an IngestResponse with the right
 * status, a cookie, and the same request id in header and body.
 */
export function expectCore(reply: Reply, reason: IngestReason): IngestResponse {
  const body = ingestResponseSchema.strict().parse(reply.json());
  expect({ reason: body.reason, status: reply.status }).toEqual({ reason, status: INGEST_STATUS[reason] });
  expect(reply.headers['content-type']).toMatch(/^application\/json\b/);
  sessionOf(reply);
  expect(body.requestId).toMatch(REQUEST_ID);
  expect(reply.headers['x-request-id']).toBe(body.requestId);
  if (reason !== 'ok') {
    expect(body).toMatchObject({ class: 'unknown', visitorId: null, confidence: 0, deviceId: null });
    expect(body).not.toHaveProperty('transparencyToken');
  }
  return body;
}

/** Checks that the answer is an error of the closed table, with its status, a request id and no cookie. */
export function expectError(reply: Reply, code: ErrorCode): Record<string, unknown> {
  const body = reply.json() as Record<string, unknown>;
  expect({ error: body['error'], status: reply.status }).toEqual({ error: code, status: ERRORS[code][0] });
  expect(Object.keys(body).filter((key) => !['error', 'message', 'details', 'reason'].includes(key))).toEqual(
    [],
  );
  expect(reply.headers['content-type']).toMatch(/^application\/json\b/);
  expect(reply.headers['set-cookie']).toBeUndefined();
  expect(reply.headers['x-request-id']).toMatch(REQUEST_ID);
  return body;
}
