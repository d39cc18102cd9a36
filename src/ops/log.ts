import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type DestinationStream, type Logger, pino } from 'pino';
import { driverError, errorCode } from '../db/availability.ts';
import { STATE_INVALID } from '../db/meta-store.ts';
import { EgressRefused } from '../egress/guard.ts';
import { type NotedRefusal, REFUSED } from '../http/reply.ts';
import { MINUTE, SECOND } from '../lib/clock.ts';
import { Unavailable } from '../lib/errors.ts';

/** Structured lines on stderr. What is logged is a code, a count or a request id: never a signal, a token or an id. */
export function createLogger(level: string, to: DestinationStream = pino.destination({ fd: 2, sync: true })) {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  return pino(options, to);
}

/**
 * An error as it may be logged: its name, code and stack without the message, which may quote bindings. What egress says
 * quotes nothing and is what an operator needs.
 */
export function describeFault(error: unknown): Record<string, string> {
  if (!(error instanceof Error)) return { name: typeof error };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return {
    name: error.name,
    // Of an outage the driver's: lock, read-only, full disk and pooler all mean to try again.
    code: errorCode(driverError(error)),
    ...(error instanceof EgressRefused || error instanceof Unavailable ? { reason: error.message } : {}),
    stack: frames.slice(0, 12).join('\n'),
  };
}

/** How the parts of a server tell what went wrong. */
export function createFaultLog(log: Logger) {
  return {
    logFault: (event: string, about?: object) => (error: unknown) =>
      log.error({ event, ...about, ...describeFault(error) }),
    onFault: (requestId: string, error: unknown): void =>
      log.error({ event: 'fault', requestId, ...describeFault(error) }),
  };
}

/** Rows without their MAC, told at most once a second: a hot one would fill the log. @returns stops it */
export function hearInvalidStates(log: Logger): () => void {
  let toldAt = Number.NEGATIVE_INFINITY;
  const hear = (tenant: unknown): void => {
    const now = performance.now();
    if (now - toldAt < SECOND) return;
    toldAt = now;
    log.error({ event: 'consent-state-invalid', tenant });
  };
  subscribe(STATE_INVALID, hear);
  return () => void unsubscribe(STATE_INVALID, hear);
}

const HINTS: Readonly<Record<NotedRefusal, string>> = {
  'unknown-origin':
    'a page of an origin that no tenant has: gpd tenants set KID origins=…, each with scheme and port',
  'unknown-kid': 'a kid that no tenant has: compare the page with gpd tenants list',
  'unknown-key': 'an API key or session that is unknown, revoked or expired: gpd apikeys list',
  'secret-key-in-page':
    'a browser sent a secret key: revoke it, and use a publishable key in pages (docs/api-keys.md)',
};

/** Each kind once a minute, without a value of the request: strangers may not fill the log. @returns stops it */
export function logRefusals(log: Logger, monotonic: () => number): () => void {
  const loggedAt = new Map<NotedRefusal, number>();
  const listener = (message: unknown): void => {
    const kind = message as NotedRefusal;
    const now = monotonic();
    if (now - (loggedAt.get(kind) ?? Number.NEGATIVE_INFINITY) < MINUTE) return;
    loggedAt.set(kind, now);
    log.warn({ event: `refused-${kind}`, hint: HINTS[kind] });
  };
  subscribe(REFUSED, listener);
  return () => void unsubscribe(REFUSED, listener);
}
