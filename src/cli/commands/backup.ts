import { resolve } from 'node:path';
import type { Command } from 'commander';
import { isoTime } from '../../lib/clock.ts';
import { notify } from '../../notify/notify.ts';
import { VERSION } from '../../version.ts';
import { type CommandContext, command, example } from '../command.ts';
import { print } from '../io.ts';
import { runWithCleanup } from '../progress.ts';

export function define(backup: Command): void {
  backup
    .argument('<file>', 'the file')
    .addHelpText('after', example('gpd backup /var/backups/gpd-monday.backup'))
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

async function backUp({ config, services, byAll, open }: CommandContext, name: string): Promise<void> {
  const file = resolve(name);
  const { createBackup } = await import('../../ops/backup.ts');
  const store = await open();
  const by = await byAll();
  const created = await runWithCleanup((onProgress) =>
    createBackup(store, config, file, { version: VERSION, by, onProgress }).catch(async (error: unknown) => {
      // If the notice fails too, the command still ends with the reason why the backup failed.
      await notifyTenants(services, { failedAt: isoTime(Date.now()) }).catch(() => {});
      throw error;
    }),
  );
  print(created, () => [
    `backup    ${created.file}`,
    `size      ${created.bytes.toLocaleString('en')} bytes, encrypted, read back and compared`,
    `as of     ${created.createdAt}`,
    'It opens only with the master key, which is not in it.',
  ]);
}
