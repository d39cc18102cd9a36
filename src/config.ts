import { existsSync, fstatSync, readFileSync, readSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { closest } from 'fastest-levenshtein';
import { parse as parseToml, TomlError } from 'smol-toml';
import { readRegularFile } from './db/own-files.ts';
import { tryOr } from './lib/errors.ts';
import { explainIssue } from './schema/explain-issue.ts';
import {
  environmentName,
  SETTING_NAMES,
  SETTINGS,
  type SettingName,
  type Settings,
} from './schema/settings.ts';

/**
 * The only reader of the environment. Precedence: flag, environment, gpd.toml, default (contract section 9).
 */

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Variables that the SDKs read with `fromEnv`; the server ignores them. */
const SDK_VARIABLES = new Set(['GPD_CONSENT_URL', 'GPD_CONSENT_KEY']);
/**
 * The launcher /usr/bin/gpd opens credentials as root and passes
 * descriptors, as in `master-key:3 database-url:4`. It is no setting.
 */
const CREDENTIAL_DESCRIPTORS = 'GPD_CREDENTIAL_FDS';
const CONFIG_FILE = 'gpd.toml';

type Environment = Readonly<Record<string, string | undefined>>;

export interface Config extends Settings {
  readonly credentials: Credentials;
}

const CREDENTIALS = ['master-key', 'database-url', 'console-client-secret'] as const;
/** The systemd credentials (LoadCredential=) that exist, as paths of files or as descriptors /dev/fd/N. */
export type Credentials = Readonly<Partial<Record<(typeof CREDENTIALS)[number], string>>>;

const DESCRIPTOR = /^\/dev\/fd\/(\d+)$/;

/** @returns the number in /dev/fd/N; null for any other path */
export function parseDescriptor(path: string): number | null {
  const number = DESCRIPTOR.exec(path)?.[1];
  return number === undefined ? null : Number(number);
}

/**
 * Reads a descriptor without opening it by its name, which needs a right that only the process that passed it
 * has. A descriptor may be a pipe; a file that is named may not.
 * @throws {NotRegularFile}
 */
export function readSecretFile(path: string): Buffer {
  const descriptor = parseDescriptor(path);
  if (descriptor === null) return readRegularFile(path);
  const stat = fstatSync(descriptor);
  if (!stat.isFile()) return readFileSync(path);
  const content = Buffer.alloc(stat.size);
  return content.subarray(0, readSync(descriptor, content, 0, stat.size, 0));
}

/**
 * The secret of the console's OIDC client; null if none is configured. The server reads it before it starts,
 * so that a wrong path stops the start instead of failing a sign-in.
 * @throws {ConfigError}
 */
export function readClientSecret(config: Config): string | null {
  const file = config.console_client_secret_file;
  if (file === null) return null;
  try {
    return readSecretFile(file).toString('utf8').trim();
  } catch {
    throw new ConfigError(`GPD_CONSOLE_CLIENT_SECRET_FILE: cannot read ${file}`);
  }
}

function refuseUnknownSettings(
  names: readonly string[],
  knownNames: readonly string[],
  source: string,
): void {
  const unknown = names.find((name) => !knownNames.includes(name));
  if (unknown !== undefined) {
    throw new ConfigError(
      `${source}: unknown setting ${unknown}; did you mean ${closest(unknown, knownNames)}?`,
    );
  }
}

function readConfigFile(path: string | undefined): Readonly<Record<string, unknown>> {
  const file = path ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : undefined);
  if (file === undefined) return {};
  const text = tryOr(() => readFileSync(file, 'utf8'), null);
  if (text === null) throw new ConfigError(`cannot read the configuration file ${file}`);
  let values: Record<string, unknown>;
  try {
    values = parseToml(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw new ConfigError(`${file}, line ${error.line}: ${error.message.split('\n')[0] ?? ''}`);
  }
  refuseUnknownSettings(Object.keys(values), SETTING_NAMES, file);
  return values;
}

function findCredentials(environment: Environment): Credentials {
  const directory = environment['CREDENTIALS_DIRECTORY'];
  const handedOver = new Map(
    [...(environment[CREDENTIAL_DESCRIPTORS] ?? '').matchAll(/(?<![\w-])([\w-]+):(\d+)/g)].map(
      ([, name, fd]) => [name, `/dev/fd/${fd}`],
    ),
  );
  const files = CREDENTIALS.map((name) => {
    const file = handedOver.get(name) ?? (directory === undefined ? '' : join(directory, name));
    return [name, file] as const;
  });
  return Object.fromEntries(files.filter(([, file]) => existsSync(file)));
}

function readText(file: string, description: string): string {
  const text = tryOr(() => readSecretFile(file).toString('utf8').trim(), null);
  if (text === null) throw new ConfigError(`cannot read ${description} (${file})`);
  return text;
}

/** @param before the settings that were already read */
function findFallback(
  name: SettingName,
  before: Readonly<Record<string, unknown>>,
  { environment, credentials }: { readonly environment: Environment; readonly credentials: Credentials },
): unknown {
  const { 'database-url': url, 'console-client-secret': secret } = credentials;
  const file = before[`${name}_file`];
  if (typeof file === 'string') return readText(file, `${environmentName(name)}_FILE`);
  if (name === 'database_url' && url !== undefined) return readText(url, 'the credential database-url');
  if (name === 'console_client_secret_file' && secret !== undefined) return secret;
  if (name === 'data_dir' && environment['STATE_DIRECTORY'])
    return environment['STATE_DIRECTORY'].split(':')[0];
  return SETTINGS[name].fallback;
}

function resolvePath(path: string): string {
  const found = tryOr(() => resolve(path), null);
  if (found !== null) return found;
  throw new ConfigError(
    'the working directory was removed: change to another one, or name a path in GPD_DATA_DIR',
  );
}

export interface LoadOptions {
  readonly environment: Environment;
  readonly flags?: Partial<Record<SettingName, unknown>>;
  readonly configFile?: string | undefined;
}

/** @throws {ConfigError} with one sentence that names the setting and the values it accepts */
export function loadConfig(options: LoadOptions): Config {
  const { environment, flags = {} } = options;
  const knownNames = SETTING_NAMES.map(environmentName);
  const givenNames = Object.keys(environment).filter(
    (name) => name.startsWith('GPD_') && !SDK_VARIABLES.has(name) && name !== CREDENTIAL_DESCRIPTORS,
  );
  refuseUnknownSettings(givenNames, knownNames, 'environment');
  const file = readConfigFile(options.configFile);
  const credentials = findCredentials(environment);
  const settings: Record<string, unknown> = {};
  for (const name of SETTING_NAMES) {
    const fromEnvironment = environment[environmentName(name)];
    const raw =
      flags[name] ??
      (fromEnvironment === '' ? undefined : fromEnvironment) ??
      file[name] ??
      findFallback(name, settings, { environment, credentials });
    const result = SETTINGS[name].schema.safeParse(raw, { error: explainIssue });
    if (!result.success) {
      const problem = result.error.issues[0]?.message ?? 'is not valid';
      const setting =
        flags[name] === undefined
          ? `${environmentName(name)} (${name} in gpd.toml)`
          : `--${name.replaceAll('_', '-')} ${raw as string}`;
      throw new ConfigError(`${setting}: ${problem}`);
    }
    settings[name] = result.data;
  }
  const parsed = settings as unknown as Settings;
  if ((parsed.tls_cert === null) !== (parsed.tls_key === null)) {
    throw new ConfigError('GPD_TLS_CERT and GPD_TLS_KEY: set both or neither');
  }
  return { ...parsed, data_dir: resolvePath(parsed.data_dir), credentials };
}

export type ServiceManager = ReturnType<typeof readServiceManager>;

const FIRST_SOCKET = 3;

/**
 * Reads the variables of a service manager (sd_notify(3), sd_listen_fds(3)). Variables
 * for another process are ignored, because a parent may not have cleared its environment.
 */
export function readServiceManager(environment: Environment, pid: number) {
  const isOurs = (name: string): boolean => environment[name] === undefined || environment[name] === `${pid}`;
  const microseconds = Number(environment['WATCHDOG_USEC'] ?? 0);
  const count = environment['LISTEN_PID'] === `${pid}` ? Number(environment['LISTEN_FDS'] ?? 0) : 0;
  const names = (environment['LISTEN_FDNAMES'] ?? '').split(':');
  return {
    /** Null if no service manager waits for notifications. */
    notifySocket: environment['NOTIFY_SOCKET'] || null,
    /** The manager expects a heartbeat within these milliseconds; null if it expects none. */
    watchdogMs: microseconds > 0 && isOurs('WATCHDOG_PID') ? microseconds / 1000 : null,
    /** Listening sockets from descriptor 3 on, with the names in their units. */
    sockets: Array.from({ length: Number.isSafeInteger(count) && count > 0 ? count : 0 }, (_, i) => ({
      fd: FIRST_SOCKET + i,
      name: names[i] ?? '',
    })),
  };
}

export function sqliteFile(config: Config): string {
  return join(config.data_dir, 'gpd.db');
}

export function databaseLocation(config: Config): string {
  return config.database_url ?? sqliteFile(config);
}

/**
 * The public origin, from which cookies, links and the log's
 * origin are built: GPD_BASE_URL, or else the listening address.
 */
export function baseUrl(config: Config, port = config.port): string {
  if (config.base_url !== null) return config.base_url;
  const host = config.host.includes(':') ? `[${config.host}]` : config.host;
  return `${config.tls_cert === null ? 'http' : 'https'}://${host}:${port}`;
}
