import { readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openBackup } from '../keys/backup-format.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { isoTime } from '../lib/clock.ts';
import { tryOr } from '../lib/errors.ts';
import { readHead } from './backup-stream-files.ts';

/** A directory of backups: gpd names the files in it, and deletes the oldest of them. */

const NAME = /^gpd-\d{4}-\d\d-\d\d-\d{6}\.backup$/;

export const isFolder = (path: string): boolean => tryOr(() => statSync(path).isDirectory(), false);

/** The file of a backup of this time (UTC): names sort as times do. */
export function backupIn(folder: string, now: number): string {
  const [day, time = ''] = isoTime(now).split('T');
  return join(folder, `gpd-${day}-${time.slice(0, 8).replaceAll(':', '')}.backup`);
}

/** False for a file of another installation: its header was made with another master key. */
async function isOwn(file: string, masterKey: MasterKey): Promise<boolean> {
  const head = await readHead(file).catch(() => null);
  return head !== null && openBackup(masterKey, head.header, head.bytes) !== null;
}

/**
 * Deletes the oldest backups that {@link backupIn} named and that open with this master key, and no other
 * file.
 * @param newest the backup just made, kept even if the clock went back and other names sort after it
 * @returns the paths that it deleted, and how many files have such a name and do not open
 */
export async function deleteOldBackups(newest: string, keep: number, masterKey: MasterKey) {
  const folder = dirname(newest);
  const files = readdirSync(folder, { withFileTypes: true }).filter((file) => file.isFile());
  const named = files.filter(({ name }) => NAME.test(name)).map(({ name }) => join(folder, name));
  const older: string[] = [];
  let foreign = 0;
  for (const path of named.sort()) {
    if (path === newest) continue;
    if (await isOwn(path, masterKey)) older.push(path);
    else foreign += 1;
  }
  const deleted = older.slice(0, Math.max(0, older.length - (keep - 1)));
  for (const path of deleted) rmSync(path);
  return { deleted, foreign };
}
