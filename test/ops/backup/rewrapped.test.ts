import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { makeBackup } from '../../../src/ops/backup.ts';
import { openStore } from '../../../src/tenants/installation-files.ts';
import { own } from '../../cli/support/own.ts';
import { tempDir } from '../../support/command.ts';

it('a backup beside `keys rewrap` fails, for no master key would open it', async () => {
  const { dataDir, json } = await own();
  const config = loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} });
  const store = await openStore(config);
  await json('keys', 'rewrap', '--yes');
  const folder = tempDir('backups');
  const by = { actorOf: () => undefined, at: Date.now() };
  const made = makeBackup(store, config, join(folder, 'b'), { version: 'test', by, onProgress: () => {} });
  await expect(made).rejects.toThrow('the master key changed during the backup: run it again');
  await store.database.close();
  expect(existsSync(join(folder, 'b'))).toBe(false);
  expect(readdirSync(folder)).toEqual([]);
  expect(readdirSync(dataDir).filter((name) => name.startsWith('staging-'))).toEqual([]);
});
