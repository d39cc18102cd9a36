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

/** Creates installations and starts servers in this process, each with a separate data directory. */

export interface TenantSpec {
  readonly kid: string;
  readonly origins: readonly string[];
}

/** The public key to which a test seals its bundles. */
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
    const created = await gpdJson<{ publicKey: string }>([...command, ...flags], {
      env: { GPD_DATA_DIR: dataDir },
    });
    keys.push(created.publicKey);
  }
  return keys;
}

/**
 * An installation is created once per run and set of tenants,
 * and then copied, because each command takes a quarter second.
 */
async function createTemplate(tenants: readonly TenantSpec[]): Promise<string> {
  const text = JSON.stringify(tenants);
  const template = join(runDir, `template-${createHash('sha256').update(text).digest('hex')}`);
  if (existsSync(template)) return template;
  const draft = tempDir('making');
  const keys = await install(join(draft, 'gpd-data'), tenants);
  writeFileSync(join(draft, 'keys.json'), JSON.stringify(keys));
  try {
    renameSync(draft, template);
  } catch {
    // Another worker was faster.
  }
  return template;
}

/** Creates an installation in a new data directory. */
export async function initGpd(
  tenants: readonly TenantSpec[] = [{ kid: KID, origins: [ORIGIN] }],
): Promise<Installation> {
  const template = await createTemplate(tenants);
  const dataDir = join(tempDir('data'), 'gpd-data');
  cpSync(join(template, 'gpd-data'), dataDir, { recursive: true });
  const keys = JSON.parse(readFileSync(join(template, 'keys.json'), 'utf8')) as string[];
  const targets = tenants.map(({ kid }, i) => ({ kid, publicKey: Buffer.from(keys[i] ?? '', 'base64') }));
  return { dataDir, targets };
}

export interface GpdOptions {
  /** Variables GPD_*. Ingest has no rate limit unless GPD_RATE_INGEST sets one. */
  readonly settings?: Environment;
  readonly tenants?: readonly TenantSpec[];
  /** The data directory of an existing installation. */
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
  /** In the order of `tenants`; empty for an existing installation. */
  readonly targets: readonly SealTarget[];
  /** Runs a command on the same installation. */
  cli(args: readonly string[], options?: RunOptions): Promise<Ran>;
  json<T = Record<string, unknown>>(args: readonly string[], options?: RunOptions): Promise<T>;
  /** Stops the server and waits for its end. */
  stop(): Promise<Exit>;
  /** Returns the log so far. */
  logs(): string;
}

export async function installationOf({ dataDir, tenants, settings }: GpdOptions) {
  const installation = dataDir === undefined ? await initGpd(tenants) : { dataDir, targets: [] };
  const env = { GPD_DATA_DIR: installation.dataDir, GPD_RATE_INGEST: 'off', ...settings };
  return {
    ...installation,
    env,
    cli: (command: readonly string[], options?: RunOptions) =>
      runGpd(command, { ...options, env: { ...env, ...options?.env } }),
    json: <T>(command: readonly string[], options?: RunOptions) =>
      gpdJson<T>(command, { ...options, env: { ...env, ...options?.env } }),
  };
}

/**
 * Polling intervals in milliseconds: changes are noticed
 * at once, while housekeeping never runs during a test.
 */
const INTERVALS = { poll: 25, agents: 25, webhooks: 25, housekeeping: DAY };

/** The server is imported late, so that tests which only start processes need not wait for it. */
const loadServer = async () => ({
  ...(await import('../../src/app.ts')),
  ...(await import('../../src/config.ts')),
  ...(await import('../../src/ops/log-service.ts')),
});

async function failedStart(error: unknown): Promise<Error> {
  const [{ commandFailureOf }, { EXIT }] = await Promise.all([
    import('../../src/cli/failure-service.ts'),
    import('../../src/cli/io-service.ts'),
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

/** Runs `gpd init`, and then the server in this process on a free port. The data is deleted after the run. */
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
      stopped ??= running.stop();
      return stopped.then(() => ({ code: 0, signal: null }));
    },
  };
}
