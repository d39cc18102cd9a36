import { accessSync, constants, existsSync, readdirSync, readlinkSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Config, descriptorOf, readSecretFile, sqliteFile } from '../../config.ts';
import { parseMasterKey } from '../../keys/master-key.ts';
import { orElse, works } from '../../lib/functions.ts';
import { countLines, erasuresFile, readErasureFile } from '../../rights/erase/erasure-log.ts';
import { findUnitCredential, masterKeyPath, pendingKeyPath } from '../../tenants/master-key-files.ts';
import { readForwardedNote } from '../untrusted-forwarded.ts';

/** What the file system tells. */

export type FileFact = NonNullable<ReturnType<typeof fileFact>>;

/** Null: it is not there, or nobody could look. `mode` is of the lower nine bits. */
export function fileFact(given: string | null) {
  if (given === null) return null;
  return orElse(() => {
    const { uid, mode, size } = statSync(given);
    const isOpen = descriptorOf(given) !== null;
    const path = isOpen ? readlinkSync(given) : given;
    return { path, uid, mode: mode & 0o777, size, readable: isOpen || mayRead(given) };
  }, null);
}

const mayRead = (path: string): boolean => works(() => accessSync(path, constants.R_OK));

/** f_type of statfs(2). */
const TMPFS = new Set([0x01021994, 0x858458f6]);
const NETWORK = new Set([0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x5346414f, 0x0bd00bd0]);

function nearestDirectory(path: string): string {
  return existsSync(path) ? path : nearestDirectory(dirname(path));
}

/** LoadCredential= of an installed unit, for the master key. */
function unitCredential() {
  const path = findUnitCredential();
  return path === null ? null : { path, file: fileFact(path) };
}

export function gatherHost(config: Config) {
  const { type, bsize, bavail, blocks, files, ffree } = statfsSync(nearestDirectory(config.data_dir));
  return {
    node: process.version,
    /** Null where the system has no user ids. */
    uid: process.getuid?.() ?? null,
    freeBytes: bavail * bsize,
    totalBytes: blocks * bsize,
    /** Share of the inodes that is free; null where the file system has none. */
    freeInodes: files > 0 ? ffree / files : null,
    fileSystem: TMPFS.has(type) ? 'tmpfs' : NETWORK.has(type >>> 0) ? 'network' : 'disk',
    unitCredential: unitCredential(),
  };
}

const LEFTOVER = /^staging-|\.tmp$|\.before-restore|\.partial$/;

/** Null: not found. */
function gatherErasureLog(config: Config): { lines: number; problem: string | null } | null {
  if (!existsSync(erasuresFile(config.data_dir))) return null;
  try {
    return { lines: countLines(readErasureFile(config)), problem: null };
  } catch (error) {
    return { lines: 0, problem: error instanceof Error ? error.message : 'it cannot be read' };
  }
}

export function gatherData(config: Config) {
  const directory = fileFact(config.data_dir);
  // What may not be looked at is another finding's, by the directory itself.
  const names = orElse(() => readdirSync(config.data_dir), []);
  return {
    directory,
    database: fileFact(sqliteFile(config)),
    walBytes: fileFact(join(config.data_dir, 'gpd.db-wal'))?.size ?? 0,
    /** Names of what an interrupted command left. */
    leftovers: names.filter((name) => LEFTOVER.test(name)),
    erasureLog: gatherErasureLog(config),
    untrustedForwarded: readForwardedNote(config),
  };
}

/** The key itself, and what is known of its file before it was tried on anything. */
export function gatherMasterKey(config: Config) {
  const path = masterKeyPath(config);
  const file = fileFact(path);
  const key = file?.readable ? parseMasterKey(readSecretFile(path)) : null;
  const rewrapPending = existsSync(pendingKeyPath(path));
  return { key, facts: { path: file?.path ?? path, file, valid: key !== null, rewrapPending } };
}
