import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type DestinationStream, type Logger, pino } from 'pino';
import { driverError, errorCode } from '../db/availability.ts';
import { STATE_INVALID } from '../db/state-invalid.ts';
import { EgressRefused } from '../egress/guard.ts';
import { SECOND } from '../lib/clock.ts';
import { Unavailable } from '../lib/errors.ts';

/** Structured lines on stderr. What is logged is a code, a count or a request id: never a signal, a token or an id. */
export function makeLogger(level: string, to: DestinationStream = pino.destination({ fd: 2, sync: true })) {
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
export function makeFaultLog(log: Logger) {
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
