import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

/**
 * Commands of gpd: `runGpd` in this process, `runProgram` the built program in one of its own, what it printed and how
 * it ended. No process outlives the run.
 */

export const PROGRAM = fileURLToPath(new URL('../../bin/gpd', import.meta.url));

/** What the parent's environment may not hand on: it would change gpd, or make it refuse to start. */
const NOT_HANDED_ON = /^(?:GPD_|NODE_OPTIONS$|NO_COLOR$|FORCE_COLOR$|(?:STATE|CREDENTIALS)_DIRECTORY$)/;

export type Environment = Readonly<Record<string, string>>;

export function cleanEnvironment(extra: Environment = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !NOT_HANDED_ON.test(name));
  return { ...Object.fromEntries(kept), ...extra };
}

/** Removed when the run ends (global-setup.ts), with what was started in it. */
const givenDir = process.env['TEST_RUN_DIR'];
export const runDir = givenDir ?? mkdtempSync(join(tmpdir(), 'gpd-test-'));
export function tempDir(name: string): string {
  return mkdtempSync(join(runDir, `${name}-`));
}

const alive = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
  // Outside of a test run nobody else clears up.
  if (givenDir === undefined) rmSync(runDir, { recursive: true, force: true, maxRetries: 3 });
});

/** The note is for global-setup.ts: a worker that dies hard cannot end its children itself. */
function track(child: ChildProcess): void {
  const note = join(runDir, `${child.pid}.pid`);
  writeFileSync(note, '');
  alive.add(child);
  child.once('close', () => {
    alive.delete(child);
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
  /** Standard input; without it the command finds an empty one. Null: it stays open and nothing comes. */
  readonly input?: string | null;
  readonly env?: Environment;
  readonly cwd?: string;
  /** Another copy of bin/gpd. */
  readonly program?: string;
}

export interface Spawned {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  readonly exited: Promise<Exit>;
}

/** Another program than gpd, looked after in the same way. */
export function spawnTool(file: string, args: readonly string[], options: RunOptions): Spawned {
  // A directory of its own, so that no gpd.toml lies about.
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
  // A command that does not read its input may be gone before it is written.
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

/** What is written to it, as text; no terminal. */
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

/** Only a process of its own has a working directory, options of Node, another program or an input that stays open. */
const needsProcess = ({ cwd, program, input, env }: RunOptions): boolean =>
  [cwd, program, env?.['NODE_OPTIONS']].some((given) => given !== undefined) || input === null;

/** Runs one command to its end, in this process where that can be. */
export async function runGpd(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  if (needsProcess(options)) return runProgram(args, options);
  const { run } = await import('../../src/cli/gpd.ts');
  const stdout = collector();
  const stderr = collector();
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

/** The one JSON value on stdout of a command that has to succeed. */
export async function gpdJson<T = Record<string, unknown>>(
  args: readonly string[],
  options: RunOptions = {},
  run: typeof runGpd = runGpd,
): Promise<T> {
  const ran = await run([...args, '--json'], options);
  if (ran.code !== 0) throw new Error(`gpd ${args.join(' ')} ended with ${ran.code}: ${ran.stderr}`);
  return JSON.parse(ran.stdout) as T;
}
