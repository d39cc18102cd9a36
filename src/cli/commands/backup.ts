import { resolve } from 'node:path';
import { isoTime } from '../../lib/clock.ts';
import { VERSION } from '../../version.ts';
import { leavingNothing } from '../broken-off.ts';
import type { Actions } from '../define.ts';
import { notifyWebhooks } from '../directory.ts';
import { withOperator } from '../operator.ts';
import { print } from '../output.ts';

async function backup(name: string): Promise<void> {
  const file = resolve(name);
  const { makeBackup } = await import('../../ops/backup.ts');
  await withOperator(async ({ store, config, byAll }) => {
    const by = byAll();
    const made = await leavingNothing((onProgress) =>
      makeBackup(store, config, file, { version: VERSION, by, onProgress }).catch(async (error: unknown) => {
        // What ends the command is why the backup failed.
        await notifyWebhooks(store, 'backup.failed', { failedAt: isoTime(Date.now()) }).catch(() => {});
        throw error;
      }),
    );
    print(made, () => [
      `backup    ${made.file}`,
      `size      ${made.bytes.toLocaleString('en')} bytes, encrypted, read back and compared`,
      `as of     ${made.createdAt}`,
      'It opens only with the master key, which is not in it.',
    ]);
  });
}

export const ACTIONS: Actions = { '': backup };
