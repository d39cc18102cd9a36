import { existsSync, linkSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Config, ConfigError, readSecretFile } from '../config.ts';
import { syncPath, writePrivate } from '../db/files.ts';
import { formatMasterKey, parseMasterKey } from '../keys/master-key.ts';
import { tryOr } from '../lib/errors.ts';

/** Where somebody put the master key: GPD_MASTER_KEY_FILE or a systemd credential. Null: it is ours to make. */
export function providedKeyPath({ master_key_file, credentials }: Config): string | null {
  return master_key_file ?? credentials['master-key'] ?? null;
}

export function masterKeyPath(config: Config): string {
  return providedKeyPath(config) ?? join(config.data_dir, 'master.key');
}

/** The next master key while `keys rewrap` is between its two writes. */
export function pendingKeyPath(path: string): string {
  return `${path}.new`;
}

/** Units of the server, and what changes them; a later one wins. /usr/bin/gpd looks in the same places. */
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

const LOADED = /^[ \t]*LoadCredential[ \t]*=[ \t]*master-key:(\/.*\S)[ \t\r]*$/gm;

/** The file that LoadCredential= of an installed unit names for the master key; null: none does. */
export function findUnitCredential(): string | null {
  const found = unitFiles().flatMap((file) => [
    ...tryOr(() => readFileSync(file, 'utf8'), '').matchAll(LOADED),
  ]);
  return found.at(-1)?.[1] ?? null;
}

/** The master key of these data. @throws {ConfigError} as {@link readMasterKeyFile}, or that only the unit holds it */
export function readMasterKey(config: Config): Buffer {
  const path = masterKeyPath(config);
  const held = providedKeyPath(config) === null && !existsSync(path) ? findUnitCredential() : null;
  if (held !== null) {
    throw new ConfigError(
      `the master key is held by the unit (LoadCredential=master-key:${held}): run gpd as root, by its command in PATH`,
    );
  }
  return readMasterKeyFile(path);
}

/** @throws {ConfigError} a plain sentence; a missing key is never made up for by a new one */
export function readMasterKeyFile(path: string): Buffer {
  let file: Buffer;
  try {
    file = readSecretFile(path);
  } catch {
    throw new ConfigError(
      `the master key ${path} is missing or not readable: put back the file that this data was created with`,
    );
  }
  const key = parseMasterKey(file);
  if (!key)
    throw new ConfigError(`the master key ${path} is not a master key: it holds 32 bytes, or their base64`);
  return key;
}

/** @throws when the file is there already */
export function writeMasterKeyFile(path: string, key: Uint8Array): void {
  writePrivate(path, formatMasterKey(key), (temporary) => linkSync(temporary, path));
}

export function replaceMasterKeyFile(path: string): void {
  renameSync(pendingKeyPath(path), path);
  syncPath(dirname(path));
}
