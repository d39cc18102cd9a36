import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { createBackup } from '../../../src/ops/backup-service.ts';
import { openStore } from '../../../src/tenants/installation-files.ts';
import { createOwn, ownOf } from '../../cli/support/own.ts';
import { tempDir } from '../../support/command.ts';
import { KID, OTHER, OTHER_ORIGIN } from '../../support/constants.ts';
import { startGpd } from '../../support/server.ts';

describe.concurrent('gpd restore', () => {
  it('that was killed before its last step leaves the old database, and the next start removes it', async () => {
    const { dataDir } = await createOwn();
    const leftovers = ['', '-wal', '-shm'].map((suffix) => join(dataDir, `gpd.db.before-restore${suffix}`));
    for (const path of leftovers) writeFileSync(path, 'rows of people');
    const gpd = await startGpd({ dataDir });
    expect(leftovers.filter((path) => existsSync(path))).toEqual([]);
    await gpd.stop();
  });

  it('takes no link for the database: what it leads to would stay, with everybody who is erased later', async () => {
    const { dataDir, gpd, json } = await createOwn();
    const file = join(tempDir('backups'), 'b');
    await json('backup', file);
    const [elsewhere, path] = [join(tempDir('disk'), 'gpd.db'), join(dataDir, 'gpd.db')];
    renameSync(path, elsewhere);
    symlinkSync(elsewhere, path);
    const before = readFileSync(elsewhere);
    const ran = await gpd(`restore ${file} --yes`);
    expect(ran).toMatchObject({ code: 1, stdout: '' });
    expect(ran.stderr).toContain('is a symbolic link');
    expect(readFileSync(elsewhere).equals(before)).toBe(true);
  });

  it('takes a backup that carries a damaged erasure: in its own database that one is done', async () => {
    const { dataDir, gpd, json } = await createOwn();
    appendFileSync(join(dataDir, 'erasures.log'), '{"v":1,"damag\n');
    const file = join(tempDir('backups'), 'b');
    await json('backup', file);
    const empty = ownOf(join(tempDir('data'), 'gpd-data'));
    await empty.json(`restore ${file} --key-file ${join(dataDir, 'master.key')}`);
    // The file stays, so that no older backup is restored over it without a warning.
    expect(readFileSync(join(empty.dataDir, 'erasures.log'), 'utf8')).toBe('{"v":1,"damag\n');
    const older = await gpd(`restore ${file} --yes`);
    expect(older.code).toBe(78);
    expect(older.stderr).toContain('line 1 is damaged');
  });
});

it('a backup beside `keys rewrap` fails, for no master key would open it', async () => {
  const { dataDir, json } = await createOwn();
  const config = loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} });
  const store = await openStore(config);
  await json('keys rewrap --yes');
  const folder = tempDir('backups');
  const by = { actorOf: () => undefined, at: Date.now() };
  const options = { version: 'test', by, onProgress: () => {} };
  const backingUp = createBackup(store, config, join(folder, 'b'), options);
  await expect(backingUp).rejects.toThrow('the master key changed during the backup: run it again');
  await store.database.close();
  expect(readdirSync(folder)).toEqual([]);
  expect(readdirSync(dataDir).filter((name) => name.startsWith('staging-'))).toEqual([]);
});

// Guards against: such a backup could be neither finished nor restored, and changes of the tenant revived it.
it('a backup with a half-removed tenant is made and restored, and nothing revives the tenant', async () => {
  const { gpd, query } = await createOwn();
  expect((await gpd(`tenants add ${OTHER} --origin ${OTHER_ORIGIN}`)).code).toBe(0);
  await query(`UPDATE tenants SET revision = -1 WHERE kid = '${OTHER}'`);
  const isRemoving = async (): Promise<boolean> =>
    (await query(`SELECT revision FROM tenants WHERE kid = '${OTHER}'`))[0]?.['revision'] === -1;

  const file = join(tempDir('backups'), 'b');
  expect(await gpd(`backup ${file}`)).toMatchObject({ code: 0 });
  expect((await gpd('doctor --all')).stdout).toMatch(new RegExp(`warn +database\\.removals +.*${OTHER}`));
  await gpd(`tenants set ${OTHER} retention.days=30`);
  await gpd(`keys rotate ${OTHER}`);
  expect(await isRemoving()).toBe(true);
  for (const line of [`restore ${file} --yes`, 'keys rewrap --yes']) {
    expect(await gpd(line)).toMatchObject({ code: 0 });
    expect(await isRemoving()).toBe(true);
  }
  expect(await gpd(`tenants remove ${OTHER} --yes`)).toMatchObject({ code: 0 });
  expect((await gpd('doctor --all')).stdout).toMatch(/pass +database\.removals/);
  expect((await gpd('tenants list --json')).stdout).toContain(KID);
});
