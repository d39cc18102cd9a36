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
  writeMasterKeyFile,
} from '../tenants/master-key-files.ts';
import { countWrapped, rewrapAll } from './rewrap-store.ts';

/** Where the new key lies, and whether it takes the old one's place. */
function newKey(config: Config, newKeyFile: string | undefined) {
  if (newKeyFile !== undefined)
    return { key: readMasterKeyFile(newKeyFile), path: newKeyFile, inPlace: false };
  const path = masterKeyPath(config);
  if (providedKeyPath(config) !== null) {
    throw new ConfigError(
      'the master key is outside the data directory: create the new one and name its file with --new-key-file',
    );
  }
  return { key: randomBytes(32), path, inPlace: true };
}

/**
 * Wraps everything with another master key in one transaction. The new key is on disk before the commit, and takes the
 * old one's name after it; a start that finds both finishes what a crash left.
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
  const next = newKey(config, options.newKeyFile);
  const pending = pendingKeyPath(next.path);
  if (options.dryRun) {
    return { ...(await countWrapped(store.database)), masterKey: next.path, dryRun: true };
  }
  // Left by a crash before the commit: nothing was ever wrapped with it, and a second rewrap at the same time has it too.
  const left = next.inPlace && existsSync(pending) ? parseMasterKey(readFileSync(pending)) : null;
  const key = left ?? next.key;
  if (next.inPlace && !left) {
    rmSync(pending, { force: true });
    writeMasterKeyFile(pending, key);
  }
  const to = createMasterKey(key, randomBytes);
  const counts = await rewrapAll(store.database, store.masterKey, to, store.serverSecret, options.by);
  if (next.inPlace) replaceMasterKeyFile(next.path);
  return { ...counts /** The file that holds the new master key. */, masterKey: next.path, dryRun: false };
}
