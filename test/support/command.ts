import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The built program as a real process: what it printed and how it ended. None outlives the run. */

export const PROGRAM = fileURLToPath(new URL('../../bin/gpd', import.meta.url));

/** What the parent's environment may not hand on: it would change gpd, or make it refuse to start. */
const NOT_HANDED_ON = /^(?:GPD_|NODE_OPTIONS$|NO_COLOR$|FORCE_COLOR$|(?:STATE|CREDENTIALS)_DIRECTORY$)/;

export type Environment = Readonly<Record<string, string>>;

function cleanEnvironment(extra: Environment = {}): NodeJS.ProcessEnv {
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

/** Runs one command to its end. */
export async function runGpd(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { output, exited } = spawnGpd(args, options);
  return { ...(await exited), ...output };
}

/** The one JSON value on stdout of a command that has to succeed. */
export async function gpdJson<T = Record<string, unknown>>(
  args: readonly string[],
  options: RunOptions = {},
): Promise<T> {
  const ran = await runGpd([...args, '--json'], options);
  if (ran.code !== 0) throw new Error(`gpd ${args.join(' ')} ended with ${ran.code}: ${ran.stderr}`);
  return JSON.parse(ran.stdout) as T;
}
