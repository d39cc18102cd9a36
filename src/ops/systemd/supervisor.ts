import type { Logger } from 'pino';
import type { ServiceManager } from '../../config.ts';
import { SECOND } from '../../lib/clock.ts';
import type { RunningApp } from '../running.ts';
import { makeNotifier } from './notify.ts';
import { takeSockets } from './sockets.ts';
import { startWatchdog } from './watchdog.ts';

/** A start lasts as long as its migrations do: while it gets on, it is given more time. */
const EXTEND_EVERY_MS = 10 * SECOND;
const EXTEND = `EXTEND_TIMEOUT_USEC=${3 * EXTEND_EVERY_MS * 1000}`;

/**
 * `gpd serve` as a unit of Type=notify (systemd.service(5)): what it reports, and when.
 * @throws {ConfigError} when a socket of the unit is for nothing here
 */
export function makeSupervisor(by: ServiceManager, log: Logger) {
  const sockets = takeSockets(by.sockets);
  const notifier = makeNotifier(by.notifySocket, (why) => log.warn({ event: 'notify-failed', why }));
  notifier.send('STATUS=starting');
  const starting = setInterval(() => notifier.send(EXTEND), EXTEND_EVERY_MS);
  let status = '';
  let watchdog: { stop(): void } | null = null;

  const tell = (text: string): string[] => {
    if (text === status) return [];
    status = text;
    return [`STATUS=${text}`];
  };
  return {
    sockets,
    /** Migrated, loaded and listening; from here on systemd expects a heartbeat. */
    ready(app: RunningApp) {
      clearInterval(starting);
      const said = (): string[] => {
        const wrong = app.notReady();
        return tell(wrong.length === 0 ? `listening on port ${app.port}` : `not ready: ${wrong.join('; ')}`);
      };
      notifier.send(...said(), 'READY=1');
      if (by.watchdogMs === null || by.notifySocket === null) return;
      watchdog = startWatchdog({
        watchdogMs: by.watchdogMs,
        answers: app.answers,
        onAlive: () => notifier.send('WATCHDOG=1', ...said()),
        onMiss: () => {
          log.error({ event: 'watchdog-missed', hint: 'the database does not answer' });
          notifier.send(...tell('the database does not answer'));
        },
      });
    },
    stopping() {
      watchdog?.stop();
      notifier.send(...tell('draining'), 'STOPPING=1');
    },
    /** The last message was sent. */
    async close() {
      clearInterval(starting);
      watchdog?.stop();
      await notifier.close();
    },
  };
}
