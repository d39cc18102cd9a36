import { spawn } from 'node:child_process';

/**
 * Tells the service manager by sd_notify(3). Node has no datagram sockets of AF_UNIX, and a process forked for each
 * message stops the event loop for as long as its pages take to copy. So one shell is started while this process is
 * still small, and hands every line to systemd-notify; docs/adr/0009 has the figures.
 */
export interface Notifier {
  /** `READY=1`, `WATCHDOG=1`, `STATUS=…`: one assignment a line, told in this order. */
  send(...assignments: readonly string[]): void;
  /** Resolves when the last line was sent, or after `deadlineMs`. */
  close(deadlineMs?: number): Promise<void>;
}

/** A signal to the whole group, as Ctrl-C is, must not end it before the last word. The sockets of the unit are not its. */
const LOOP = `trap '' TERM INT HUP; exec 3>&- 4>&-; while IFS= read -r line; do systemd-notify "$line" || exit 1; done`;
const CLOSE_MS = 2000;
const SYSTEM_PATH = '/usr/bin:/bin';

const silent: Notifier = { send: () => {}, close: () => Promise.resolve() };

/** @param onFault told once when nobody can be told: without a message the service manager ends the start itself */
export function makeNotifier(socket: string | null, onFault: (why: string) => void): Notifier {
  if (socket === null) return silent;
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
    send(...assignments) {
      if (!ended) shell.stdin.write(assignments.map((text) => `${text.replaceAll(/\s/g, ' ')}\n`).join(''));
    },
    async close(deadlineMs = CLOSE_MS) {
      closing = true;
      shell.stdin.end();
      const timer = setTimeout(() => shell.kill('SIGKILL'), deadlineMs);
      await gone;
      clearTimeout(timer);
    },
  };
}
