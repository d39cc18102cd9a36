import { existsSync, linkSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Config, ConfigError, readSecretFile } from '../config.ts';
import { NotRegularFile, refuseLink, syncPath, writePrivate } from '../db/own-files.ts';
import { formatMasterKey, isPredictable, parseMasterKey } from '../keys/master-key.ts';
import { tryOr } from '../lib/errors.ts';

/**
 * Finds, reads and writes the file of the master key. Commands
 * and the server open it through installation-files.ts.
 */

/**
 * The file that the operator provides, by GPD_MASTER_KEY_FILE
 * or a systemd credential; null if gpd creates the key.
 */
export function providedKeyPath({ master_key_file, credentials }: Config): string | null {
  return master_key_file ?? credentials['master-key'] ?? null;
}

export function masterKeyPath(config: Config): string {
  return providedKeyPath(config) ?? join(config.data_dir, 'master.key');
}

/** `keys rewrap` writes the new master key here first, and renames it after the database was rewrapped. */
export function pendingKeyPath(path: string): string {
  return `${path}.new`;
}

/**
 * Folders of the systemd units; a later one overrides an earlier one. /usr/bin/gpd looks in the same places.
 */
const SHIPPED = '/usr/lib/systemd/system';
const LOCAL = '/etc/systemd/system';
const UNITS = ['gpd.service', 'gpd@.service'];

function unitFiles(): string[] {
  const dropIns = UNITS.flatMap((unit) => {
    const folder = join(LOCAL, `${unit}.d`);
    const names = tryOr(() => readdirSync(folder), []).filter((name) => name.endsWith('.conf'));
    return names.sort().map((name) => join(folder, name));
  });
  return [SHIPPED, LOCAL].flatMap((folder) => UNITS.map((unit) => join(folder, unit))).concat(dropIns);
}

const LOAD_CREDENTIAL = /^[ \t]*LoadCredential[ \t]*=[ \t]*master-key:(\/.*\S)[ \t\r]*$/gm;

/** The master key file that an installed unit names in LoadCredential=; null if no unit does. */
export function findUnitCredential(): string | null {
  const found = unitFiles().flatMap((file) => [
    ...tryOr(() => readFileSync(file, 'utf8'), '').matchAll(LOAD_CREDENTIAL),
  ]);
  return found.at(-1)?.[1] ?? null;
}

/** @throws {ConfigError} as {@link readMasterKeyFile}, or if only the systemd unit can read the key */
export function readMasterKey(config: Config): Buffer {
  const path = masterKeyPath(config);
  const unitFile = providedKeyPath(config) === null && !existsSync(path) ? findUnitCredential() : null;
  if (unitFile !== null) {
    throw new ConfigError(
      `the master key is held by the unit (LoadCredential=master-key:${unitFile}): run gpd as root, by its command in PATH`,
    );
  }
  return readMasterKeyFile(path);
}

/** @returns what is wrong with the file and what to do, as the end of a sentence */
function describeUnreadable(error: unknown): string {
  if (error instanceof NotRegularFile) return 'is not a regular file';
  return /^E(ACCES|PERM)$/.test((error as NodeJS.ErrnoException).code ?? '')
    ? 'cannot be read: permission denied; run gpd as the user that owns it'
    : 'is missing or not readable: put back the file that this data was created with';
}

/** Never creates a key in place of a missing one. @throws {ConfigError} with a plain sentence */
export function readMasterKeyFile(path: string): Buffer {
  let file: Buffer;
  try {
    file = readSecretFile(path);
  } catch (error) {
    throw new ConfigError(`the master key ${path} ${describeUnreadable(error)}`);
  }
  const key = parseMasterKey(file);
  if (!key)
    throw new ConfigError(`the master key ${path} is not a master key: it holds 32 bytes, or their base64`);
  return key;
}

/** @throws {ConfigError} for a key that anybody guesses: 32 zeros, for instance */
export function requireRandomKey(path: string, key: Uint8Array): void {
  if (isPredictable(key))
    throw new ConfigError(
      `the master key ${path} is not random: write 32 random bytes, for instance openssl rand -base64 32`,
    );
}

/** @throws {Error} if the file already exists */
export function writeMasterKeyFile(path: string, key: Uint8Array): void {
  refuseLink(path);
  writePrivate(path, formatMasterKey(key), (temporary) => linkSync(temporary, path));
}

export function replaceMasterKeyFile(path: string): void {
  renameSync(pendingKeyPath(path), path);
  syncPath(dirname(path));
}
