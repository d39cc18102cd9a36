import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAM, tempDir } from '../../../support/command.ts';

/** A small service manager in Python, because Node can neither receive datagrams on AF_UNIX nor keep a listening socket without accepting. */

const SCRIPT = fileURLToPath(new URL('./manager.py', import.meta.url));

export interface Word {
  readonly text: string;
  readonly sender: number;
  /** Seconds on the manager's clock. */
  readonly at: number;
}

export interface Manager {
  readonly ports: readonly number[];
  readonly words: readonly Word[];
  readonly exits: readonly number[];
  readonly pids: readonly number[];
  start(): void;
  signal(name: string): void;
  /** The output of the program. */
  log(): string;
  end(): void;
}

export interface ManagerSpec {
  readonly dataDir: string;
  readonly sockets?: readonly { readonly name: string; readonly kind?: 'unix'; readonly path?: string }[];
  readonly env?: Readonly<Record<string, string>>;
  readonly watchdogMs?: number;
  readonly args?: readonly string[];
  /** Another process id for LISTEN_PID than that of the program. */
  readonly listenPid?: number;
}

export function missingManager(): string | null {
  if (spawnSync('python3', ['--version']).status !== 0) return 'python3 is not installed';
  return existsSync('/usr/bin/systemd-notify') || existsSync('/bin/systemd-notify')
    ? null
    : 'systemd-notify is not installed (package systemd)';
}

export async function until(description: string, holds: () => boolean, ms = 60_000): Promise<void> {
  const end = performance.now() + ms;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`it took longer than ${ms} ms until ${description}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

type Told =
  | { readonly event: 'sockets'; readonly ports: readonly number[] }
  | { readonly event: 'started'; readonly pid: number }
  | { readonly event: 'exit'; readonly code: number }
  | ({ readonly event: 'notify' } & Word);

/** Creates a manager whose sockets listen and whose program is not started yet. */
export async function createManager(spec: ManagerSpec): Promise<Manager> {
  const folder = tempDir('manager');
  const log = join(folder, 'log');
  const { sockets = [], env = {}, watchdogMs, args = [], listenPid, dataDir } = spec;
  const environment = {
    command: [process.execPath, PROGRAM, 'serve', ...args],
    env: {
      PATH: process.env['PATH'],
      GPD_DATA_DIR: dataDir,
      GPD_RATE_INGEST: 'off',
      GPD_RATE_PRIVACY: 'off',
      ...env,
    },
    notify: join(folder, 'notify'),
    log,
    sockets,
    ...(watchdogMs === undefined ? {} : { watchdogUsec: watchdogMs * 1000 }),
    ...(listenPid === undefined ? {} : { listenPid }),
  };
  const child = spawn('python3', [SCRIPT, JSON.stringify(environment)], {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const words: Word[] = [];
  const exits: number[] = [];
  const pids: number[] = [];
  let ports: readonly number[] | null = null;
  let rest = '';
  child.stdin.on('error', () => {});
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const message = JSON.parse(line) as Told;
      if (message.event === 'sockets') ports = message.ports;
      else if (message.event === 'started') pids.push(message.pid);
      else if (message.event === 'exit') exits.push(message.code);
      else if (message.text !== 'BARRIER=1') words.push(message);
    }
  });
  await until('the sockets listen', () => ports !== null);
  return {
    ports: ports ?? [],
    words,
    exits,
    pids,
    start: () => void child.stdin.write('start\n'),
    signal: (name) => void child.stdin.write(`signal ${name}\n`),
    log: () => (existsSync(log) ? readFileSync(log, 'utf8') : ''),
    end: () => void child.stdin.end(),
  };
}
