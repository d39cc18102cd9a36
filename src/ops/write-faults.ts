import type { Logger } from 'pino';
import { MINUTE, SECOND } from '../lib/clock.ts';
import { driverError, errorCode } from '../lib/errors.ts';

/**
 * Watches whether the database takes writes: a full or read-only disk refuses all of them, while reads go on.
 */

export const WRITE_FAULTS = ['disk-full', 'disk-read-only', 'disk-failed'] as const;
type WriteFault = (typeof WRITE_FAULTS)[number];

/** SQLITE_* and PostgreSQL's disk_full and read_only_sql_transaction (appendix A of its manual). */
const CODES: readonly (readonly [RegExp, WriteFault])[] = [
  [/^(SQLITE_FULL|53100)/, 'disk-full'],
  [/^(SQLITE_READONLY|25006)/, 'disk-read-only'],
  [/^SQLITE_(IOERR|CANTOPEN)/, 'disk-failed'],
];

const PARTS = ['writes'];

/** Without a fault for this long, the next write that succeeds ends the degraded state. */
const RECOVERED_AFTER_MS = 2 * SECOND;

export function createWriteWatch(log: Pick<Logger, 'error' | 'info'>, monotonic: () => number) {
  let current: { readonly event: WriteFault; readonly code: string } | null = null;
  let isLogged = false;
  let faultAt = Number.NEGATIVE_INFINITY;
  let loggedAt = Number.NEGATIVE_INFINITY;
  let count: (fault: WriteFault) => void = () => {};
  return {
    /** Called after each write transaction; null: it was committed. */
    onWrite: (error: unknown): void => {
      if (error === null) {
        // A transaction that changed nothing is committed on a full disk too.
        if (current && monotonic() - faultAt < RECOVERED_AFTER_MS) return;
        if (current && isLogged) log.info({ event: 'writes-recovered' });
        current = null;
        isLogged = false;
        return;
      }
      const code = errorCode(driverError(error));
      const event = CODES.find(([pattern]) => pattern.test(code))?.[1];
      if (!event) return;
      current = { event, code };
      faultAt = monotonic();
      count(event);
    },
    /** Logs the first 503 after a fault, at most once a minute: a small write may succeed on a full disk. */
    onUnavailable: (requestId: string): void => {
      if (!current || isLogged || monotonic() - loggedAt < MINUTE) return;
      isLogged = true;
      loggedAt = monotonic();
      log.error({ ...current, requestId, hint: 'gpd doctor: host.space; docs/operate/disk-full.md' });
    },
    degraded: (): readonly string[] => (current ? PARTS : []),
    onCount(listener: (fault: WriteFault) => void): void {
      count = listener;
    },
  };
}
