import { createHash } from 'node:crypto';
import { cpSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Environment,
  type Exit,
  gpdJson,
  type Ran,
  type RunOptions,
  runDir,
  runGpd,
  type Spawned,
  spawnGpd,
  tempDir,
} from './command.ts';
import { KID, ORIGIN } from './constants.ts';

/** Installations and running servers, each with data of its own. */

const START_MS = 20_000;
const STOP_MS = 20_000;

export interface TenantSpec {
  readonly kid: string;
  readonly origins: readonly string[];
}

/** What bundles are sealed to. */
export interface SealTarget {
  readonly kid: string;
  readonly publicKey: Buffer;
}

interface Installation {
  readonly dataDir: string;
  /** In the order of the tenants. */
  readonly targets: readonly SealTarget[];
}

async function install(dataDir: string, tenants: readonly TenantSpec[]): Promise<string[]> {
  const keys: string[] = [];
  for (const [i, { kid, origins }] of tenants.entries()) {
    const command = i === 0 ? ['init', '--tenant', kid] : ['tenants', 'add', kid];
    const flags = origins.flatMap((origin) => ['--origin', origin]);
    const made = await gpdJson<{ publicKey: string }>([...command, ...flags], {
      env: { GPD_DATA_DIR: dataDir },
    });
    keys.push(made.publicKey);
  }
  return keys;
}

/** Installations with the same tenants are made once a run and copied: a start of the program costs a quarter second. */
async function templateOf(tenants: readonly TenantSpec[]): Promise<string> {
  const text = JSON.stringify(tenants);
  const template = join(runDir, `template-${createHash('sha256').update(text).digest('hex')}`);
  if (existsSync(template)) return template;
  const made = tempDir('making');
  const keys = await install(join(made, 'gpd-data'), tenants);
  writeFileSync(join(made, 'keys.json'), JSON.stringify(keys));
  try {
    renameSync(made, template);
  } catch {
    // another worker was faster
  }
  return template;
}

/** A new installation with a data directory of its own. */
export async function initGpd(
  tenants: readonly TenantSpec[] = [{ kid: KID, origins: [ORIGIN] }],
): Promise<Installation> {
  const template = await templateOf(tenants);
  const dataDir = join(tempDir('data'), 'gpd-data');
  cpSync(join(template, 'gpd-data'), dataDir, { recursive: true });
  const keys = JSON.parse(readFileSync(join(template, 'keys.json'), 'utf8')) as string[];
  const targets = tenants.map(({ kid }, i) => ({ kid, publicKey: Buffer.from(keys[i] ?? '', 'base64') }));
  return { dataDir, targets };
}

export interface GpdOptions {
  /** GPD_* names. Ingest is not rate-limited unless GPD_RATE_INGEST says so. */
  readonly settings?: Environment;
  readonly tenants?: readonly TenantSpec[];
  /** An installation that is there already; nothing is made then. */
  readonly dataDir?: string;
  /** Arguments of `serve`; a free port by default. */
  readonly args?: readonly string[];
  readonly cwd?: string;
  /** Another copy of bin/gpd. */
  readonly program?: string;
}

export interface Gpd {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly dataDir: string;
  /** In the order of `tenants`; empty for an installation that was there. */
  readonly targets: readonly SealTarget[];
  /** Runs a command on the same installation. */
  cli(args: readonly string[], options?: RunOptions): Promise<Ran>;
  json<T = Record<string, unknown>>(args: readonly string[], options?: RunOptions): Promise<T>;
  /** Asks it to end. */
  terminate(): void;
  readonly exited: Promise<Exit>;
  /** Asks it to end and waits. */
  stop(): Promise<Exit>;
  kill9(): Promise<void>;
  /** Its stderr so far. */
  logs(): string;
}

function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what} took longer than ${ms} ms`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function listening({ child, output, exited }: Spawned): Promise<{ url: string; port: number }> {
  return new Promise((resolve, reject) => {
    child.stdout?.on('data', () => {
      const line = output.stdout.split('\n', 1)[0] ?? '';
      if (output.stdout.includes('\n')) resolve(JSON.parse(line) as { url: string; port: number });
    });
    void exited.then(({ code }) => reject(new Error(`gpd serve ended with ${code}: ${output.stderr}`)));
  });
}

/** `gpd init` and `gpd serve` on a free port; the data are thrown away with the run. */
export async function startGpd(options: GpdOptions = {}): Promise<Gpd> {
  const made =
    options.dataDir === undefined
      ? await initGpd(options.tenants)
      : { dataDir: options.dataDir, targets: [] };
  const { dataDir, targets } = made;
  // Hundreds of data directories, each with a reserve of its own: a small one.
  const env = { GPD_DATA_DIR: dataDir, GPD_RATE_INGEST: 'off', GPD_DISK_RESERVE: '1', ...options.settings };
  const { args = ['--port', '0'], cwd = tempDir('cwd') } = options;
  const program = options.program === undefined ? {} : { program: options.program };
  const spawned = spawnGpd(['serve', '--json', ...args], { env, cwd, ...program });
  const { child, output, exited } = spawned;
  const { url, port } = await within(START_MS, 'the start of gpd', listening(spawned));
  return {
    url,
    port,
    pid: child.pid ?? 0,
    dataDir,
    targets,
    cli: (command, more) => runGpd(command, { ...more, env: { ...env, ...more?.env } }),
    json: (command, more) => gpdJson(command, { ...more, env: { ...env, ...more?.env } }),
    terminate: () => void child.kill('SIGTERM'),
    exited,
    stop() {
      child.kill('SIGTERM');
      return within(STOP_MS, 'the end of gpd', exited);
    },
    async kill9() {
      child.kill('SIGKILL');
      await exited;
    },
    logs: () => output.stderr,
  };
}
