import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/ports.ts';

/** A real PgBouncer of the test's own in front of a database. */
export interface PgBouncer {
  readonly url: string;
  log(): string;
  stop(): Promise<void>;
}

/** Null when PgBouncer can be started; else why not, and the remedy. */
export function missingPgBouncer(): string | null {
  try {
    execFileSync('pgbouncer', ['--version'], { stdio: 'ignore' });
    return null;
  } catch {
    return 'pgbouncer is not installed (apt-get install pgbouncer)';
  }
}

export interface PgBouncerOptions {
  readonly mode?: 'transaction' | 'statement' | 'session';
  /** Further lines of the section [pgbouncer]. */
  readonly settings?: readonly string[];
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

/** PgBouncer refuses to run as root. */
const NOBODY = 65_534;

function writeConfig(directory: string, database: URL, port: number, options: PgBouncerOptions): string {
  const file = join(directory, 'pgbouncer.ini');
  const users = join(directory, 'users.txt');
  writeFileSync(users, `"${database.username}" "${database.password}"\n`, { mode: 0o600 });
  const lines = [
    '[databases]',
    `* = host=${database.hostname} port=${database.port}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = trust',
    `auth_file = ${users}`,
    `pool_mode = ${options.mode ?? 'transaction'}`,
    // Fewer than the nodes would open by themselves: what is not given back would be missed.
    'default_pool_size = 12',
    'max_client_conn = 500',
    ...(options.settings ?? []),
  ];
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  return file;
}

async function startOnce(databaseUrl: string, options: PgBouncerOptions): Promise<PgBouncer> {
  const database = new URL(databaseUrl);
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), 'gpd-test-pgbouncer-'));
  const file = writeConfig(directory, database, port, options);
  const root = process.getuid?.() === 0;
  if (root)
    for (const path of [directory, file, join(directory, 'users.txt')]) chownSync(path, NOBODY, NOBODY);
  const child: ChildProcess = spawn('pgbouncer', [file], root ? { uid: NOBODY, gid: NOBODY } : {});
  let log = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const exited = once(child, 'exit');
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
    process.off('exit', killAtExit);
    rmSync(directory, { recursive: true, force: true });
  };
  for (let i = 0; i < 100; i += 1) {
    if (child.exitCode !== null) break;
    if (await listens(port)) {
      const url = new URL(databaseUrl);
      url.port = String(port);
      return { url: url.href, log: () => log, stop };
    }
    await sleep(50);
  }
  await stop();
  throw new Error(`PgBouncer did not start:\n${log}`);
}

export async function startPgBouncer(
  databaseUrl: string,
  options: PgBouncerOptions = {},
): Promise<PgBouncer> {
  try {
    return await startOnce(databaseUrl, options);
  } catch {
    // The port may have been taken between the probe and the start.
    return startOnce(databaseUrl, options);
  }
}
