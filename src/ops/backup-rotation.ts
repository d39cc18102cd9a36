import { readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isoTime } from '../lib/clock.ts';
import { tryOr } from '../lib/errors.ts';

/** A directory of backups: gpd names the files in it, and deletes the oldest of them. */

const NAME = /^gpd-\d{4}-\d\d-\d\d-\d{6}\.backup$/;

export const isFolder = (path: string): boolean => tryOr(() => statSync(path).isDirectory(), false);

/** The file of a backup of this time (UTC): names sort as times do. */
export function backupIn(folder: string, now: number): string {
  const [day, time = ''] = isoTime(now).split('T');
  return join(folder, `gpd-${day}-${time.slice(0, 8).replaceAll(':', '')}.backup`);
}

/**
 * Deletes the oldest backups that {@link backupIn} named, and no other file.
 * @param newest the backup just made, kept even if the clock went back and other names sort after it
 * @returns the paths that it deleted
 */
export function deleteOldBackups(newest: string, keep: number): readonly string[] {
  const folder = dirname(newest);
  const files = readdirSync(folder, { withFileTypes: true }).filter((file) => file.isFile());
  const paths = files.filter(({ name }) => NAME.test(name)).map(({ name }) => join(folder, name));
  const olderPaths = paths.filter((path) => path !== newest).sort();
  const old = olderPaths.slice(0, Math.max(0, olderPaths.length - (keep - 1)));
  for (const path of old) rmSync(path);
  return old;
}
