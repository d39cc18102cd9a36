import { appendFileSync, existsSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { own } from '../../cli/support/own.ts';
import { gpdJson, tempDir } from '../../support/command.ts';
import { startGpd } from '../../support/server.ts';

describe.concurrent('gpd restore', () => {
  it('that was killed before its last step leaves the old database, and the next start removes it', async () => {
    const { dataDir } = await own();
    const left = ['', '-wal', '-shm'].map((suffix) => join(dataDir, `gpd.db.before-restore${suffix}`));
    for (const path of left) writeFileSync(path, 'rows of people');
    const gpd = await startGpd({ dataDir });
    expect(left.filter((path) => existsSync(path))).toEqual([]);
    await gpd.stop();
  });

  it('takes no link for the database: what it leads to would stay, with everybody who is erased later', async () => {
    const { dataDir, gpd, json } = await own();
    const file = join(tempDir('backups'), 'b');
    await json('backup', file);
    const [elsewhere, path] = [join(tempDir('disk'), 'gpd.db'), join(dataDir, 'gpd.db')];
    renameSync(path, elsewhere);
    symlinkSync(elsewhere, path);
    const before = readFileSync(elsewhere);
    const ran = await gpd('restore', file, '--yes');
    expect(ran).toMatchObject({ code: 1, stdout: '' });
    expect(ran.stderr).toContain('is a symbolic link');
    expect(readFileSync(elsewhere).equals(before)).toBe(true);
  });

  it('takes a backup that carries a damaged erasure: in its own database that one is done', async () => {
    const { dataDir, gpd, json } = await own();
    appendFileSync(join(dataDir, 'erasures.log'), '{"v":1,"damag\n');
    const file = join(tempDir('backups'), 'b');
    await json('backup', file);
    const empty = join(tempDir('data'), 'gpd-data');
    const key = ['--key-file', join(dataDir, 'master.key')];
    await gpdJson(['restore', file, ...key], { env: { GPD_DATA_DIR: empty } });
    // Kept, so that an older backup is not restored over it without a word.
    expect(readFileSync(join(empty, 'erasures.log'), 'utf8')).toBe('{"v":1,"damag\n');
    const older = await gpd('restore', file, '--yes');
    expect(older.code).toBe(78);
    expect(older.stderr).toContain('line 1 is damaged');
  });
});
