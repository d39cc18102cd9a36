import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { sqliteFile } from '../../config.ts';
import { leavingNothing } from '../broken-off.ts';
import { accountName } from '../command.ts';
import type { Actions } from '../define.ts';
import { notFound, print, say } from '../output.ts';
import { configFor, confirm, type DestructiveFlags, type Flags } from '../run.ts';

type Options = DestructiveFlags & Flags<'keyFile'>;

export async function restore(name: string, options: Options, config = configFor()): Promise<void> {
  const file = resolve(name);
  if (!existsSync(file)) throw notFound(`no such file: ${file}`);
  const dryRun = options.dryRun === true;
  const replaces = config.database_url !== null || existsSync(sqliteFile(config));
  if (replaces) await confirm(options, `Restoring ${file}: everything written after that backup is lost`);
  const { restoreBackup } = await import('../../ops/restore.ts');
  const asked = { dryRun, by: { account: accountName(), at: Date.now() }, keyFile: options.keyFile };
  const restored = await leavingNothing((onProgress) =>
    restoreBackup(config, file, { ...asked, onProgress }),
  );
  print(restored, () => [
    dryRun ? `${file} is whole and would be restored` : `restored  ${restored.dataDir}`,
    `as of     ${restored.createdAt}, by gpd ${restored.gpd}`,
    `erasures  ${restored.erasuresToRepeat} came after it; the server repeats them before it listens`,
    ...(restored.holdsToRepeat === 0
      ? []
      : [
          `holds     ${restored.holdsToRepeat} were placed or released after it; the server repeats that too`,
        ]),
    ...restored.lostEntries.map(
      ({ kid, signed, entries }) =>
        `log       ${kid} continues from ${entries} entries; ${signed} were signed, and anyone who kept that checkpoint can prove it`,
    ),
    ...restored.apiKeysRevoked.map((id) => `API key   ${id} was revoked after it, and is revoked again`),
    ...restored.staffRemoved.map((id) => `staff     ${id} was removed after it, and is removed again`),
    ...restored.sealKeysDestroyed.map(
      (key) => `seal key  ${key} was destroyed after it, and is destroyed again`,
    ),
    'sessions  all are ended; bundles from before this restore are stale',
    ...(dryRun ? [] : ['Next: gpd serve']),
  ]);
  if (!dryRun && replaces) {
    say(
      'Withdrawals of consent and contests that came after the backup are not in it: see docs/operate/restore.md.',
    );
  }
}

export const ACTIONS: Actions = { '': (name: string, options: Options) => restore(name, options) };
