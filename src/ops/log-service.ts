import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type DestinationStream, type Logger, pino } from 'pino';
import { STATE_INVALID } from '../db/meta-store.ts';
import { EgressRefused } from '../egress/guard.ts';
import { type NotedRefusal, REFUSED } from '../http/reply.ts';
import { MINUTE, SECOND } from '../lib/clock.ts';
import { driverError, errorCode, Unavailable } from '../lib/errors.ts';

/**
 * The server's log: JSON lines on stderr with codes, counts and request ids, never a signal, a token or a
 * person's id.
 */
export function createLogger(level: string, to: DestinationStream = pino.destination({ fd: 2, sync: true })) {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  return pino(options, to);
}

/**
 * Reduces an error to its name, code and stack; its message may quote values of a statement. Messages of
 * egress and outages quote none and are kept.
 */
export function describeFault(error: unknown): Record<string, string> {
  if (!(error instanceof Error)) return { name: typeof error };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return {
    name: error.name,
    // The driver's code, because `Unavailable` stands for a lock, a read-only file, a full disk or a pooler
    // alike.
    code: errorCode(driverError(error)),
    ...(error instanceof EgressRefused || error instanceof Unavailable ? { reason: error.message } : {}),
    stack: frames.slice(0, 12).join('\n'),
  };
}

/** @returns the error callbacks of a server's parts */
export function createFaultLog(log: Logger) {
  return {
    logFault: (event: string, about?: object) => (error: unknown) =>
      log.error({ event, ...about, ...describeFault(error) }),
    onFault: (requestId: string, error: unknown): void =>
      log.error({ event: 'fault', requestId, ...describeFault(error) }),
  };
}

/**
 * Logs rows without a valid MAC, at most once a second, because a busy one would fill the log.
 * @returns stops it
 */
export function logInvalidStates(log: Logger): () => void {
  let loggedAt = Number.NEGATIVE_INFINITY;
  const listener = (tenant: unknown): void => {
    const now = performance.now();
    if (now - loggedAt < SECOND) return;
    loggedAt = now;
    log.error({ event: 'consent-state-invalid', tenant });
  };
  subscribe(STATE_INVALID, listener);
  return () => void unsubscribe(STATE_INVALID, listener);
}

const HINTS: Readonly<Record<NotedRefusal, string>> = {
  'unknown-origin':
    'a page of an origin that no tenant has: gpd tenants set KID origins=…, each with scheme and port',
  'unknown-kid': 'a kid that no tenant has: compare the page with gpd tenants list',
  'unknown-key': 'an API key or session that is unknown, revoked or expired: gpd apikeys list',
  'secret-key-in-page':
    'a secret key came from a page, or with the headers of one: revoke it if a page has it (docs/api-keys.md)',
};

/** Names longer than this are cut. */
const MAX_NAME = 100;

/** Text of a stranger, for one line of the log. */
const shortName = (text: string): string =>
  text.slice(0, MAX_NAME).replace(/[^\x21-\x7e]/g, (char) => encodeURIComponent(char.toWellFormed()));

/**
 * Logs each kind of refusal once a minute with the name that was refused, so that strangers cannot fill the
 * log.
 * @returns stops it
 */
export function logRefusals(log: Logger, monotonic: () => number): () => void {
  const loggedAt = new Map<NotedRefusal, number>();
  const listener = (message: unknown): void => {
    const { kind, value } = message as { readonly kind: NotedRefusal; readonly value: string };
    const now = monotonic();
    if (now - (loggedAt.get(kind) ?? Number.NEGATIVE_INFINITY) < MINUTE) return;
    loggedAt.set(kind, now);
    log.warn({ event: `refused-${kind}`, refused: shortName(value), hint: HINTS[kind] });
  };
  subscribe(REFUSED, listener);
  return () => void unsubscribe(REFUSED, listener);
}
