import { spawn } from 'node:child_process';
import type { Logger } from 'pino';
import type { ServiceManager } from '../../config.ts';
import { SECOND } from '../../lib/clock.ts';
import type { RunningApp } from '../running.ts';
import { takeSockets } from './sockets.ts';

/** A signal to the whole group, as Ctrl-C is, must not end it before the last word. The sockets of the unit are not its. */
const LOOP = `trap '' TERM INT HUP; exec 3>&- 4>&-; while IFS= read -r line; do systemd-notify "$line" || exit 1; done`;
const CLOSE_MS = 2000;
const SYSTEM_PATH = '/usr/bin:/bin';

/**
 * Tells the service manager by sd_notify(3). Node has no datagram sockets of AF_UNIX, and a process forked for each
 * message stops the event loop for as long as its pages take to copy. So one shell is started while this process is
 * still small, and hands every line to systemd-notify.
 * @param onFault told once when nobody can be told: without a message the service manager ends the start itself
 */
function startNotifier(socket: string, onFault: (why: string) => void) {
  const shell = spawn('/bin/sh', ['-c', LOOP], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { NOTIFY_SOCKET: socket, PATH: SYSTEM_PATH },
  });
  let ended = false;
  let closing = false;
  const gone = new Promise<void>((resolve) => {
    const end = (why: string) => (): void => {
      if (!ended && !closing) onFault(why);
      ended = true;
      resolve();
    };
    shell.once('error', end('/bin/sh cannot be started'));
    shell.once('exit', end('systemd-notify failed'));
  });
  shell.stdin.on('error', () => {});
  return {
    /** `READY=1`, `WATCHDOG=1`, `STATUS=…`: one assignment a line, told in this order. */
    send(assignments: readonly string[]) {
      if (!ended) shell.stdin.write(assignments.map((text) => `${text.replaceAll(/\s/g, ' ')}\n`).join(''));
    },
    /** Resolves when the last line was sent, or after a while. */
    async close() {
      closing = true;
      shell.stdin.end();
      const timer = setTimeout(() => shell.kill('SIGKILL'), CLOSE_MS);
      await gone;
      clearTimeout(timer);
    },
  };
}

interface WatchdogDeps {
  /** After so long without a sign the service manager ends this process. */
  readonly watchdogMs: number;
  /** May never settle: then there is no further sign. */
  readonly answers: () => Promise<boolean>;
  readonly onAlive: () => void;
  /** The first of several misses. */
  readonly onMiss: () => void;
}

/** Two may be late before the third decides. */
const SIGNS_A_PERIOD = 3;

/** A heartbeat only while both work: the timer needs the event loop, the probe the database. */
export function startWatchdog(deps: WatchdogDeps): { stop(): void } {
  let pending = false;
  let missed = false;
  let stopped = false;

  const miss = (): void => {
    if (!missed && !stopped) deps.onMiss();
    missed = true;
  };
  const look = async (): Promise<void> => {
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
    else void look();
  };
  const timer = setInterval(tick, deps.watchdogMs / SIGNS_A_PERIOD);
  return {
    stop() {
      stopped = true;
      clearInterval(timer);
    },
  };
}

/** A start lasts as long as its migrations do: while it gets on, it is given more time. */
const EXTEND_EVERY_MS = 10 * SECOND;
const EXTEND = `EXTEND_TIMEOUT_USEC=${3 * EXTEND_EVERY_MS * 1000}`;

/**
 * `gpd serve` as a unit of Type=notify (systemd.service(5)): what it reports, and when.
 * @throws {ConfigError} when a socket of the unit is for nothing here
 */
export function createSupervisor({ sockets: given, notifySocket, watchdogMs }: ServiceManager, log: Logger) {
  const sockets = takeSockets(given);
  const onFault = (why: string): void => log.warn({ event: 'notify-failed', why });
  const notifier = notifySocket === null ? null : startNotifier(notifySocket, onFault);
  const send = (...assignments: readonly string[]): void => notifier?.send(assignments);
  send('STATUS=starting');
  const starting = setInterval(() => send(EXTEND), EXTEND_EVERY_MS);
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
      send(...said(), 'READY=1');
      if (watchdogMs === null || !notifier) return;
      watchdog = startWatchdog({
        watchdogMs,
        answers: app.answers,
        onAlive: () => send('WATCHDOG=1', ...said()),
        onMiss: () => {
          log.error({ event: 'watchdog-missed', hint: 'the database does not answer' });
          send(...tell('the database does not answer'));
        },
      });
    },
    stopping() {
      watchdog?.stop();
      send(...tell('draining'), 'STOPPING=1');
    },
    /** The last message was sent. */
    async close() {
      clearInterval(starting);
      watchdog?.stop();
      await notifier?.close();
    },
  };
}
