import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { type Config, sqliteFile } from '../../config.ts';
import {
  accountName,
  type CommandContext,
  command,
  example,
  type Flags,
  startCommand,
  YES,
} from '../command-service.ts';
import { confirm, type DestructiveFlags, notFound, print, say } from '../io-service.ts';
import { runWithCleanup } from '../progress-service.ts';

export function define(restore: Command): void {
  restore
    .argument('<file>', 'the file')
    .option(
      '--key-file <file>',
      "the backup's master key, if this data directory has none or a different one",
    )
    .option(...YES)
    .option('--dry-run', 'verify the backup and change nothing')
    .addHelpText('after', example('gpd restore /var/backups/gpd-monday.backup --dry-run'))
    .action(command(restoreFrom));
}

type Options = DestructiveFlags & Flags<'keyFile'>;

const restoreFrom = ({ config }: CommandContext, name: string, options: Options): Promise<void> =>
  restoreInto(config, name, options);

export async function restoreInto(config: Config, name: string, options: Options): Promise<void> {
  const file = resolve(name);
  if (!existsSync(file)) throw notFound(`no such file: ${file}`);
  const dryRun = options.dryRun === true;
  const replaces = config.database_url !== null || existsSync(sqliteFile(config));
  if (replaces) await confirm(options, `Restoring ${file}: everything written after that backup is lost`);
  const { restoreBackup } = await import('../../ops/restore-service.ts');
  const restoreOptions = { dryRun, by: { account: accountName(), at: Date.now() }, keyFile: options.keyFile };
  const restored = await runWithCleanup((onProgress) =>
    restoreBackup(config, file, { ...restoreOptions, onProgress }),
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
    ...(dryRun ? [] : [`Next: ${startCommand(config)}`]),
  ]);
  if (!dryRun && replaces) {
    say(
      'Withdrawals of consent and contests that came after the backup are not in it: see docs/operate/restore.md.',
    );
  }
}
