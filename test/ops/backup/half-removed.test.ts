import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runGpd, tempDir } from '../../support/command.ts';
import { KID, OTHER, OTHER_ORIGIN } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { initGpd } from '../../support/server.ts';

/** A tenant of which `gpd tenants remove` was interrupted between its two transactions. */

// Guards against: such a backup could be neither finished nor restored, and changes of the tenant revived it.
it('a backup with a half-removed tenant is made and restored, and nothing revives the tenant', async () => {
  const { dataDir } = await initGpd();
  const env = { GPD_DATA_DIR: dataDir };
  const gpd = (...words: string[]) => runGpd(words, { env });
  expect((await gpd('tenants', 'add', OTHER, '--origin', OTHER_ORIGIN)).code).toBe(0);
  await execute(dataDir, `UPDATE tenants SET revision = -1 WHERE kid = '${OTHER}'`);
  const revisionOf = async () =>
    (await execute(dataDir, `SELECT revision FROM tenants WHERE kid = '${OTHER}'`))[0];

  const file = join(tempDir('backups'), 'b');
  expect(await gpd('backup', file)).toMatchObject({ code: 0 });
  expect((await gpd('doctor', '--all')).stdout).toMatch(new RegExp(`warn +database\\.removals +.*${OTHER}`));
  await gpd('tenants', 'set', OTHER, 'retention.days=30');
  await gpd('keys', 'rotate', OTHER);
  expect(await revisionOf()).toEqual({ revision: -1 });
  expect(await gpd('restore', file, '--yes')).toMatchObject({ code: 0 });
  expect(await revisionOf()).toEqual({ revision: -1 });
  expect(await gpd('keys', 'rewrap', '--yes')).toMatchObject({ code: 0 });
  expect(await revisionOf()).toEqual({ revision: -1 });
  expect(await gpd('tenants', 'remove', OTHER, '--yes')).toMatchObject({ code: 0 });
  expect((await gpd('doctor', '--all')).stdout).toMatch(/pass +database\.removals/);
  expect((await gpd('tenants', 'list', '--json')).stdout).toContain(KID);
});
