import type { IncomingHttpHeaders } from 'node:http';
import { preflightAllows } from '../schema/routes.ts';

/** Open to every origin: nothing of it depends on who asks. */
export const open = {
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
} as const;

/** Whether pages of an origin may read the answer. A preflight cannot know the kid (contract 3.1): any tenant's origin may. */
export type KnowsOrigin = (origin: string) => boolean;

const PREFLIGHT_SECONDS = '600';

/** CORS with credentials, only for a registered origin, never `*`; `Vary: Origin` on everything, errors too. */
export function corsHeaders(headers: IncomingHttpHeaders, knowsOrigin: KnowsOrigin): Record<string, string> {
  const { origin } = headers;
  if (origin === undefined || !knowsOrigin(origin)) return { vary: 'Origin' };
  return {
    vary: 'Origin',
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    // Date: a browser whose clock is off learns the time that it is judged by.
    'access-control-expose-headers': 'X-Request-Id, Retry-After, Date',
  };
}

export function preflightHeaders(
  headers: IncomingHttpHeaders,
  knowsOrigin: KnowsOrigin,
  allow: { readonly methods: string; readonly headers: string },
): Record<string, string> {
  const cors = corsHeaders(headers, knowsOrigin);
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
