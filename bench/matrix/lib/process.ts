import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Visit } from './types.ts';

/** Starts and ends programs as process groups, because a browser is many processes. */

const GRACE_MS = 1500;

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  } catch {
    // The process has ended already.
  }
}

async function endGroup(child: ChildProcess): Promise<void> {
  const hasExited = child.exitCode !== null || child.signalCode !== null;
  signalGroup(child, 'SIGTERM');
  if (!hasExited) await Promise.race([once(child, 'exit'), sleep(GRACE_MS)]);
  signalGroup(child, 'SIGKILL');
}

/** Ends a detached program at the end of the visit. */
export function endWith(visit: Pick<Visit, 'defer'>, child: ChildProcess): void {
  // A program that cannot be started shows as a report that never comes.
  child.on('error', () => {});
  visit.defer(() => endGroup(child));
}

/** Starts a program of this visit; it ends with the visit. */
export function start(
  visit: Visit,
  command: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): void {
  const child = spawn(command, args, {
    cwd: visit.directory,
    detached: true,
    env: { ...visit.environment, ...environment },
    stdio: 'ignore',
  });
  endWith(visit, child);
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

/** Repeats `ask` until it succeeds. @throws {Error} its last error after `ms` */
export async function eventually<T>(ask: () => Promise<T>, ms = 60_000): Promise<T> {
  const deadline = Date.now() + ms;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(200);
    }
  }
}
