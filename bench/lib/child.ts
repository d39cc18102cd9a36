import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

export interface Finished {
  readonly stdout: string;
  readonly wallSeconds: number;
}

export interface SpawnOptions {
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** The caller's environment without any GPD_*: a setting of the caller must not change a figure. */
export function cleanEnvironment(extraVariables: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('GPD_'));
  return { ...Object.fromEntries(inherited), ...extraVariables };
}

export function startNode(args: readonly string[], options: SpawnOptions): ChildProcess {
  const { cwd, env = cleanEnvironment() } = options;
  return spawn(process.execPath, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Resolves when the process has ended. @throws {Error} when its exit code is not 0 */
export async function runNode(args: readonly string[], options: SpawnOptions): Promise<Finished> {
  const startedAt = performance.now();
  const child = startNode(args, options);
  const closed = once(child, 'close');
  const stdout = child.stdout ? await text(child.stdout) : '';
  const [code] = (await closed) as [number | null];
  if (code !== 0) throw new Error(`node ${args.join(' ')} ended with ${code}`);
  return { stdout, wallSeconds: (performance.now() - startedAt) / 1000 };
}

/** @returns the first line that a server prints, which it does when it listens @throws {Error} when it ends before */
export async function firstLine(child: ChildProcess): Promise<string> {
  let got = '';
  for await (const chunk of child.stdout ?? []) {
    got += String(chunk);
    const end = got.indexOf('\n');
    if (end !== -1) return got.slice(0, end);
  }
  throw new Error(`the server ended before it listened (${child.exitCode})`);
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'exit');
  child.kill('SIGTERM');
  await closed;
}
