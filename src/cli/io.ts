import { AsyncLocalStorage } from 'node:async_hooks';
import type { Readable } from 'node:stream';

/** What a command reads and writes: the process's own, or what `run` was given. */

type Written = NodeJS.WritableStream & { readonly isTTY?: boolean };

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Written;
  readonly stderr: Written;
  /** What the command ends with (contract section 9). */
  exitCode: number;
  /** What every command takes, as this one was given it. */
  asked: { readonly config?: string; readonly json?: boolean };
  /** Ends the process at once, where it is the command's own: a server that failed half-way has timers that would keep it. */
  leave(): void;
}

const given = new AsyncLocalStorage<Io>();
const { env, stdout, stderr } = process;
const own: Io = {
  env,
  stdout,
  stderr,
  // Made when it is first asked for: an open stdin may keep a process.
  get stdin() {
    return process.stdin;
  },
  exitCode: 0,
  asked: {},
  leave: () => process.exit(own.exitCode),
};

export function io(): Io {
  return given.getStore() ?? own;
}

/** Two commands at one time in one process do not meet. */
export function withIo<T>(streams: Io, work: () => Promise<T>): Promise<T> {
  return given.run(streams, work);
}

/** Both ends of a prompt. */
export function onTerminal(): boolean {
  const { stdin, stderr: messages } = io();
  return stdin.isTTY === true && messages.isTTY === true;
}
