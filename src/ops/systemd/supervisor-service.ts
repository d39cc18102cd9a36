import { spawn } from 'node:child_process';
import type { Logger } from 'pino';
import type { ServiceManager } from '../../config.ts';
import { SECOND } from '../../lib/clock.ts';
import type { RunningApp } from '../running.ts';
import { takeSockets } from './socket-files.ts';

/**
 * Ignores signals to the process group (Ctrl-C), to send the last message, and closes descriptors 3 and 4,
 * the unit's sockets.
 */
const LOOP = `trap '' TERM INT HUP; exec 3>&- 4>&-; while IFS= read -r line; do systemd-notify "$line" || exit 1; done`;
const CLOSE_MS = 2000;
const SYSTEM_PATH = '/usr/bin:/bin';

/**
 * Sends messages to the service manager (sd_notify(3)). Node has no datagram sockets of AF_UNIX, and forking
 * a large process for each message would block the event loop. So one shell is started early and passes each
 * line to systemd-notify.
 * @param onFault called once if messages cannot be sent; the service manager then ends the start
 */
function startNotifier(socket: string, onFault: (reason: string) => void) {
  const shell = spawn('/bin/sh', ['-c', LOOP], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { NOTIFY_SOCKET: socket, PATH: SYSTEM_PATH },
  });
  let hasEnded = false;
  let closing = false;
  const exit = new Promise<void>((resolve) => {
    const end = (reason: string) => (): void => {
      if (!hasEnded && !closing) onFault(reason);
      hasEnded = true;
      resolve();
    };
    shell.once('error', end('/bin/sh cannot be started'));
    shell.once('exit', end('systemd-notify failed'));
  });
  shell.stdin.on('error', () => {});
  return {
    /** @param assignments such as `READY=1` or `STATUS=…`, which arrive in this order */
    send(assignments: readonly string[]) {
      if (!hasEnded)
        shell.stdin.write(assignments.map((text) => `${text.replaceAll(/\s/g, ' ')}\n`).join(''));
    },
    /** Resolves when the last line was sent, after CLOSE_MS at the latest. */
    async close() {
      closing = true;
      shell.stdin.end();
      const timer = setTimeout(() => shell.kill('SIGKILL'), CLOSE_MS);
      await exit;
      clearTimeout(timer);
    },
  };
}

interface WatchdogDeps {
  /** The service manager ends this process after this time without a heartbeat. */
  readonly watchdogMs: number;
  /** May never settle: then there is no further heartbeat. */
  readonly answers: () => Promise<boolean>;
  readonly onAlive: () => void;
  /** Called at the first of several misses. */
  readonly onMiss: () => void;
}

/** Two heartbeats may be missed before the third decides. */
const SIGNS_A_PERIOD = 3;

/** Sends a heartbeat only while the event loop (for the timer) and the database (for the probe) work. */
export function startWatchdog(deps: WatchdogDeps): { stop(): void } {
  let pending = false;
  let missed = false;
  let stopped = false;

  const miss = (): void => {
    if (!missed && !stopped) deps.onMiss();
    missed = true;
  };
  const probe = async (): Promise<void> => {
    pending = true;
    const alive = await deps.answers().catch(() => false);
    pending = false;
    if (stopped) return;
    if (!alive) return miss();
    missed = false;
    deps.onAlive();
  };
  const tick = (): void => {
    if (pending) miss();
    else void probe();
  };
  const timer = setInterval(tick, deps.watchdogMs / SIGNS_A_PERIOD);
  return {
    stop() {
      stopped = true;
      clearInterval(timer);
    },
  };
}

/** Migrations can take long: the start asks for more time as long as the event loop runs. */
const EXTEND_EVERY_MS = 10 * SECOND;
const EXTEND = `EXTEND_TIMEOUT_USEC=${3 * EXTEND_EVERY_MS * 1000}`;

/**
 * Reports the state of `gpd serve` to systemd as a unit of Type=notify (systemd.service(5)).
 * @throws {ConfigError} for a socket of the unit that gpd does not know
 */
export function createSupervisor(
  { sockets: descriptors, notifySocket, watchdogMs }: ServiceManager,
  log: Logger,
) {
  const sockets = takeSockets(descriptors);
  const onFault = (reason: string): void => log.warn({ event: 'notify-failed', why: reason });
  const notifier = notifySocket === null ? null : startNotifier(notifySocket, onFault);
  const send = (...assignments: readonly string[]): void => notifier?.send(assignments);
  send('STATUS=starting');
  const starting = setInterval(() => send(EXTEND), EXTEND_EVERY_MS);
  let status = '';
  let watchdog: { stop(): void } | null = null;

  const changeStatus = (text: string): string[] => {
    if (text === status) return [];
    status = text;
    return [`STATUS=${text}`];
  };
  return {
    sockets,
    /** Called when the server listens; from then on systemd expects a heartbeat. */
    ready(app: RunningApp) {
      clearInterval(starting);
      const statusLines = (): string[] => {
        const problems = app.notReady();
        return changeStatus(
          problems.length === 0 ? `listening on port ${app.port}` : `not ready: ${problems.join('; ')}`,
        );
      };
      send(...statusLines(), 'READY=1');
      if (watchdogMs === null || !notifier) return;
      watchdog = startWatchdog({
        watchdogMs,
        answers: app.pingDatabase,
        onAlive: () => send('WATCHDOG=1', ...statusLines()),
        onMiss: () => {
          log.error({ event: 'watchdog-missed', hint: 'the database does not answer' });
          send(...changeStatus('the database does not answer'));
        },
      });
    },
    stopping() {
      watchdog?.stop();
      send(...changeStatus('draining'), 'STOPPING=1');
    },
    /** Resolves when the last message was sent. */
    async close() {
      clearInterval(starting);
      watchdog?.stop();
      await notifier?.close();
    },
  };
}
