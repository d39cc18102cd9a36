import { resolve } from 'node:path';
import { isoTime } from '../../lib/clock.ts';
import { VERSION } from '../../version.ts';
import { leavingNothing } from '../broken-off.ts';
import type { Actions } from '../define.ts';
import { notifyWebhooks } from '../directory.ts';
import { withOperator } from '../operator.ts';
import { print } from '../output.ts';
import { makeStageLine } from '../progress.ts';

async function backup(name: string): Promise<void> {
  const file = resolve(name);
  const { makeBackup } = await import('../../ops/backup.ts');
  await withOperator(async ({ store, config, byAll }) => {
    const line = makeStageLine(Date.now);
    const options = { version: VERSION, by: byAll(), onProgress: line.update };
    const work = () =>
      makeBackup(store, config, file, options).catch(async (error: unknown) => {
        // What ends the command is why the backup failed.
        await notifyWebhooks(store, 'backup.failed', { failedAt: isoTime(Date.now()) }).catch(() => {});
        throw error;
      });
    const made = await leavingNothing(work).finally(() => line.end());
    print(made, () => [
      `backup    ${made.file}`,
      `size      ${made.bytes.toLocaleString('en')} bytes, encrypted, read back and compared`,
      `as of     ${made.createdAt}`,
      'It opens only with the master key, which is not in it.',
    ]);
  });
}

export const ACTIONS: Actions = { '': backup };
