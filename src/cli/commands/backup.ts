import { resolve } from 'node:path';
import type { Command } from 'commander';
import { isoTime } from '../../lib/clock.ts';
import { notify } from '../../notify/notify-service.ts';
import { backupIn, deleteOldBackups, isFolder } from '../../ops/backup-rotation-files.ts';
import { VERSION } from '../../version.ts';
import { type CommandContext, checkInteger, command, example, type Flags } from '../command-service.ts';
import { misused, print } from '../io-service.ts';
import { runWithCleanup } from '../progress-service.ts';

export function define(backup: Command): void {
  backup
    .argument('<file>', 'the file, or a directory in which gpd names it by the time')
    .option('--keep <n>', 'in a directory: then delete all but the newest n backups of this installation')
    .addHelpText('after', example('gpd backup /var/lib/gpd/backups --keep 14'))
    .action(command(backUp));
}

/** Enqueues the event for each tenant that subscribes to it. */
async function notifyTenants(services: CommandContext['services'], data: object): Promise<void> {
  const { database, tenants } = await services();
  await database.transaction(async (tx) => {
    for (const tenant of tenants.all())
      await notify(tx, tenant, { event: 'backup.failed', data, at: Date.now() });
  });
}

const MAX_KEPT = 10_000;

/** @returns `keep` null: nothing is deleted */
function checkPlace(name: string, { keep }: Flags<'keep'>) {
  const place = resolve(name);
  const isDirectory = isFolder(place);
  const file = isDirectory ? backupIn(place, Date.now()) : place;
  if (keep === undefined) return { file, keep: null };
  if (!isDirectory) throw misused(`--keep: ${place} is no directory; name one, and gpd names the file`);
  const expected = `a number from 1 to ${MAX_KEPT.toLocaleString('en')}`;
  return { file, keep: checkInteger('--keep', keep, [1, MAX_KEPT], expected) };
}

async function backUp(
  { config, services, byAll, open }: CommandContext,
  name: string,
  options: Flags<'keep'>,
): Promise<void> {
  const { file, keep } = checkPlace(name, options);
  const { createBackup } = await import('../../ops/backup-service.ts');
  const store = await open();
  const by = await byAll();
  const created = await runWithCleanup((onProgress) =>
    createBackup(store, config, file, { version: VERSION, by, onProgress }).catch(async (error: unknown) => {
      // If the notice fails too, the command still ends with the reason why the backup failed.
      await notifyTenants(services, { failedAt: isoTime(Date.now()) }).catch(() => {});
      throw error;
    }),
  );
  const { deleted, foreign } =
    keep === null ? { deleted: [], foreign: 0 } : await deleteOldBackups(file, keep, store.masterKey);
  print({ ...created, deleted, foreign }, () => [
    `backup    ${created.file}`,
    `size      ${created.bytes.toLocaleString('en')} bytes, encrypted, read back and compared`,
    `as of     ${created.createdAt}`,
    ...(deleted.length > 0 ? [`deleted   ${deleted.length} older backups`] : []),
    ...(foreign > 0
      ? [
          `kept      ${foreign} files that do not open with this master key: of another installation, or from before \`gpd keys rewrap\``,
        ]
      : []),
    'It opens only with the master key, which is not in it.',
  ]);
}
