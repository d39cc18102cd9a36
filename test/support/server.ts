import { createHash } from 'node:crypto';
import { cpSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DAY } from '../../src/lib/clock.ts';
import type { AppOptions } from '../../src/ops/running.ts';
import {
  cleanEnvironment,
  collector,
  type Environment,
  type Exit,
  gpdJson,
  type Ran,
  type RunOptions,
  runDir,
  runGpd,
  tempDir,
} from './command.ts';
import { KID, ORIGIN } from './constants.ts';

/** Installations and running servers, each with data of its own. */

export const STOP_MS = 60_000;

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
}

export interface InProcessOptions extends GpdOptions {
  readonly app?: Pick<AppOptions, 'clock' | 'intervals' | 'decryptThread'>;
}

/** A server and the installation that it serves. */
export interface Gpd {
  readonly url: string;
  readonly port: number;
  readonly dataDir: string;
  /** In the order of `tenants`; empty for an installation that was there. */
  readonly targets: readonly SealTarget[];
  /** Runs a command on the same installation. */
  cli(args: readonly string[], options?: RunOptions): Promise<Ran>;
  json<T = Record<string, unknown>>(args: readonly string[], options?: RunOptions): Promise<T>;
  /** Asks it to end and waits. */
  stop(): Promise<Exit>;
  /** What it has logged so far. */
  logs(): string;
}

export function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what} took longer than ${ms} ms`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

export async function installationOf(
  { dataDir, tenants, settings }: GpdOptions,
  run: typeof runGpd = runGpd,
) {
  const made = dataDir === undefined ? await initGpd(tenants) : { dataDir, targets: [] };
  const env = { GPD_DATA_DIR: made.dataDir, GPD_RATE_INGEST: 'off', ...settings };
  return {
    ...made,
    env,
    cli: (command: readonly string[], more?: RunOptions) =>
      run(command, { ...more, env: { ...env, ...more?.env } }),
    json: <T>(command: readonly string[], more?: RunOptions) =>
      gpdJson<T>(command, { ...more, env: { ...env, ...more?.env } }, run),
  };
}

/** What a running server looks for again and again, at once; what time alone makes due, not by itself. */
const INTERVALS = { poll: 25, agents: 25, webhooks: 25, housekeeping: DAY };

/** Loaded when a server is to run here: whoever starts processes alone need not wait for it. */
const loadServer = async () => ({
  ...(await import('../../src/app.ts')),
  ...(await import('../../src/config.ts')),
  ...(await import('../../src/ops/log.ts')),
});

async function failedStart(error: unknown): Promise<Error> {
  const [{ commandFailureOf }, { EXIT }] = await Promise.all([
    import('../../src/cli/failure.ts'),
    import('../../src/cli/io.ts'),
  ]);
  const { exit, message } = commandFailureOf(error);
  return new Error(`gpd serve ended with ${EXIT[exit]}: gpd: ${message}`, { cause: error });
}

async function startHere(env: Environment, args: readonly string[], app: InProcessOptions['app']) {
  const { startApp, loadConfig, createLogger } = await loadServer();
  const options = { host: { type: 'string' }, port: { type: 'string' } } as const;
  const { values } = parseArgs({ args: [...args], options });
  const logged = collector();
  try {
    const config = loadConfig({ environment: cleanEnvironment(env), flags: values });
    const log = createLogger(config.log_level, logged);
    const onFatal = (error: Error): void => log.fatal({ event: 'fail-stop', name: error.name });
    const intervals = { ...INTERVALS, ...app?.intervals };
    return { running: await startApp(config, { log, onFatal, ...app, intervals }), logs: logged.text };
  } catch (error) {
    throw await failedStart(error);
  }
}

/** `gpd init`, then the server in this process on a free port; the data are thrown away with the run. */
export async function startGpd(options: InProcessOptions = {}): Promise<Gpd> {
  const { dataDir, targets, env, cli, json } = await installationOf(options);
  const { running, logs } = await startHere(env, options.args ?? ['--port', '0'], options.app);
  const { url, port } = running;
  let stopped: Promise<void> | null = null;
  return {
    url,
    port,
    dataDir,
    targets,
    cli,
    json,
    logs,
    stop() {
      stopped ??= within(STOP_MS, 'the end of gpd', running.stop());
      return stopped.then(() => ({ code: 0, signal: null }));
    },
  };
}
