import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type Config, ConfigError } from '../config.ts';
import { formatMasterKey, parseMasterKey } from '../keys/master-key.ts';

/** Where the master key comes from: a systemd credential, GPD_MASTER_KEY_FILE, or master.key in the data directory. */
export function masterKeyPath(config: Config): string {
  if (config.master_key_file !== null) return config.master_key_file;
  if (config.credentialsDirectory !== null) {
    const credential = join(config.credentialsDirectory, 'master-key');
    if (existsSync(credential)) return credential;
  }
  return join(config.data_dir, 'master.key');
}

/** The next master key while `keys rewrap` is between its two writes. */
export function pendingKeyPath(path: string): string {
  return `${path}.new`;
}

/** @throws {ConfigError} a plain sentence; a missing key is never made up for by a new one */
export function readMasterKeyFile(path: string): Buffer {
  let file: Buffer;
  try {
    file = readFileSync(path);
  } catch {
    throw new ConfigError(
      `the master key ${path} is missing or not readable: put back the file that this data was made with, or run \`gpd init\` for a new installation`,
    );
  }
  const key = parseMasterKey(file);
  if (!key)
    throw new ConfigError(`the master key ${path} is not a master key: it holds 32 bytes, or their base64`);
  return key;
}

/** Makes the rename and the file itself durable. */
function syncDirectory(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Writes a new file of mode 0600, whole or not at all. @throws when the file is there already */
export function writeMasterKeyFile(path: string, key: Uint8Array): void {
  const temporary = `${path}.${process.pid}.tmp`;
  const handle = openSync(temporary, 'w', 0o600);
  try {
    writeSync(handle, formatMasterKey(key));
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  try {
    linkSync(temporary, path);
  } finally {
    unlinkSync(temporary);
  }
  syncDirectory(dirname(path));
}

export function replaceMasterKeyFile(path: string): void {
  renameSync(pendingKeyPath(path), path);
  syncDirectory(dirname(path));
}
