import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

/**
 * Runs commands of gpd: `runGpd` in this process, `runProgram` as a
 * separate process of the built program. No process outlives the test run.
 */

export const PROGRAM = fileURLToPath(new URL('../../bin/gpd', import.meta.url));

/** These variables of the parent would change gpd, or make it refuse to start. */
const NOT_INHERITED = /^(?:GPD_|NODE_OPTIONS$|NO_COLOR$|FORCE_COLOR$|(?:STATE|CREDENTIALS)_DIRECTORY$)/;

export type Environment = Readonly<Record<string, string>>;

export function cleanEnvironment(extra: Environment = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !NOT_INHERITED.test(name));
  return { ...Object.fromEntries(inherited), ...extra };
}

/** global-setup.ts deletes this folder when the run ends, and stops the processes that were started in it. */
const givenDir = process.env['TEST_RUN_DIR'];
export const runDir = givenDir ?? mkdtempSync(join(tmpdir(), 'gpd-test-'));
export function tempDir(name: string): string {
  return mkdtempSync(join(runDir, `${name}-`));
}

const liveChildren = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of liveChildren) child.kill('SIGKILL');
  // Outside a test run nothing else deletes the folder.
  if (givenDir === undefined) rmSync(runDir, { recursive: true, force: true, maxRetries: 3 });
});

/** Writes a file with the pid for global-setup.ts, because a killed worker cannot stop its children. */
function track(child: ChildProcess): void {
  const note = join(runDir, `${child.pid}.pid`);
  writeFileSync(note, '');
  liveChildren.add(child);
  child.once('close', () => {
    liveChildren.delete(child);
    rmSync(note, { force: true });
  });
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Ran extends Exit {
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** Standard input, empty by default. Null keeps it open without sending anything. */
  readonly input?: string | null;
  readonly env?: Environment;
  readonly cwd?: string;
  /** The path of another copy of bin/gpd. */
  readonly program?: string;
  /** Standard output is a terminal of this width; only in this process. */
  readonly columns?: number;
}

export interface Spawned {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  readonly exited: Promise<Exit>;
}

/** Starts any program, and stops it when the test process ends. */
export function spawnTool(file: string, args: readonly string[], options: RunOptions): Spawned {
  // An empty directory contains no gpd.toml that gpd would read.
  const cwd = options.cwd ?? tempDir('cwd');
  const child = spawn(file, args, { cwd, env: cleanEnvironment(options.env) });
  track(child);
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text;
  });
  const exited = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  // A command that does not read its input may exit before it is written.
  child.stdin.on('error', () => {});
  if (options.input !== null) child.stdin.end(options.input ?? '');
  return { child, output, exited };
}

export function spawnGpd(args: readonly string[], options: RunOptions): Spawned {
  const { program = PROGRAM } = options;
  return spawnTool(process.execPath, [program, ...args], options);
}

/** Runs one command of the built program to its end. */
export async function runProgram(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { output, exited } = spawnGpd(args, options);
  return { ...(await exited), ...output };
}

/** @returns a stream that collects what is written to it; it is no terminal */
export function collector(): Writable & { readonly text: () => string } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return Object.assign(stream, { text: () => Buffer.concat(chunks).toString('utf8') });
}

/**
 * A working directory, Node options, another program and an input that stays open need a separate process.
 */
const needsProcess = ({ cwd, program, input, env }: RunOptions): boolean =>
  [cwd, program, env?.['NODE_OPTIONS']].some((option) => option !== undefined) || input === null;

/** Runs one command to its end, in this process if possible. */
export async function runGpd(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  if (needsProcess(options)) return runProgram(args, options);
  const { run } = await import('../../src/cli/gpd.ts');
  const terminal = options.columns === undefined ? {} : { isTTY: true, columns: options.columns };
  const stdout = Object.assign(collector(), terminal);
  const stderr = Object.assign(collector(), terminal);
  const stdin = Readable.from(options.input ? [Buffer.from(options.input)] : []);
  const code = await run(args, {
    env: cleanEnvironment(options.env),
    stdin,
    stdout,
    stderr,
    exitCode: 0,
    globalOptions: {},
    leave: () => {},
  });
  return { code, signal: null, stdout: stdout.text(), stderr: stderr.text() };
}

/** Runs a command with --json, which must succeed. @returns the value that it printed */
export async function gpdJson<T = Record<string, unknown>>(
  args: readonly string[],
  options: RunOptions = {},
  run: typeof runGpd = runGpd,
): Promise<T> {
  const ran = await run([...args, '--json'], options);
  if (ran.code !== 0) throw new Error(`gpd ${args.join(' ')} ended with ${ran.code}: ${ran.stderr}`);
  return JSON.parse(ran.stdout) as T;
}
