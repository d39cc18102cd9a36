import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { type Config, ConfigError } from '../config.ts';
import { createMasterKey, parseMasterKey } from '../keys/master-key.ts';
import type { InstallationAct } from '../lib/act.ts';
import type { Store } from '../tenants/installation-files.ts';
import {
  masterKeyPath,
  pendingKeyPath,
  providedKeyPath,
  readMasterKeyFile,
  replaceMasterKeyFile,
  requireRandomKey,
  writeMasterKeyFile,
} from '../tenants/master-key-files.ts';
import { countWrapped, rewrapAll } from './rewrap-store.ts';

/** `inPlace`: the new key replaces the file of the old one; otherwise the operator changes the setting. */
function chooseNewKey(config: Config, newKeyFile: string | undefined) {
  if (newKeyFile !== undefined) {
    const key = readMasterKeyFile(newKeyFile);
    requireRandomKey(newKeyFile, key);
    return { key, path: newKeyFile, inPlace: false };
  }
  const path = masterKeyPath(config);
  if (providedKeyPath(config) !== null) {
    throw new ConfigError(
      'the master key is outside the data directory: create the new one and name its file with --new-key-file',
    );
  }
  return { key: randomBytes(32), path, inPlace: true };
}

/**
 * `gpd keys rewrap`: wraps all secrets with a new master key in one transaction. The new key is written to a
 * pending file before the commit and renamed after it. The next start finishes a change that a crash
 * interrupted.
 */
export async function rewrap(
  store: Store,
  config: Config,
  options: {
    readonly dryRun: boolean;
    readonly newKeyFile?: string | undefined;
    readonly by: InstallationAct;
  },
) {
  const next = chooseNewKey(config, options.newKeyFile);
  const pendingPath = pendingKeyPath(next.path);
  if (options.dryRun) {
    return { ...(await countWrapped(store.database)), masterKey: next.path, dryRun: true };
  }
  // A crash before the commit, or a second rewrap at this moment, has left a key with which nothing is
  // wrapped: use that one.
  const pendingKey =
    next.inPlace && existsSync(pendingPath) ? parseMasterKey(readFileSync(pendingPath)) : null;
  const key = pendingKey ?? next.key;
  if (next.inPlace && !pendingKey) {
    rmSync(pendingPath, { force: true });
    writeMasterKeyFile(pendingPath, key);
  }
  const to = createMasterKey(key, randomBytes);
  const counts = await rewrapAll(store.database, store.masterKey, to, store.serverSecret, options.by);
  if (next.inPlace) replaceMasterKeyFile(next.path);
  return { ...counts /** The file that holds the new master key. */, masterKey: next.path, dryRun: false };
}
