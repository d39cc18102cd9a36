import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { removeAbandonedStaging, removeStaging, stagingFile } from '../../../../src/db/staging-files.ts';
import { createOwn } from '../../../cli/support/own.ts';
import { spawnGpd, tempDir } from '../../../support/command.ts';

/** Unencrypted copies of the database are deleted by the process that made them, or else by the next one. */

describe('a copy in the clear', () => {
  it('of an earlier process with the same number, as every container’s first, is left over too', () => {
    const directory = tempDir('staging');
    writeFileSync(join(directory, `staging-${process.pid}-gpd.db`), '');
    mkdirSync(join(directory, `staging-${process.pid}-abcdef`));
    writeFileSync(join(directory, `staging-${process.pid}-abcdef`, 'gpd.db'), '');
    const mine = stagingFile(directory, 'gpd.db');
    writeFileSync(mine, '');
    removeAbandonedStaging(directory);
    expect(readdirSync(directory)).toEqual([basename(dirname(mine))]);
    removeStaging(mine);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('of a process whose number somebody else has now goes when nobody has written it for half a day', () => {
    const directory = tempDir('staging');
    const [old = '', young = ''] = ['a', 'b'].map((name) =>
      join(directory, `staging-${process.ppid}-${name}`),
    );
    for (const path of [old, young]) mkdirSync(path);
    utimesSync(old, 0, Date.now() / 1000 - 13 * 3600);
    removeAbandonedStaging(directory);
    expect(readdirSync(directory)).toEqual([basename(young)]);
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('goes with a backup that %s ends', async (signal) => {
    const { dataDir, query } = await createOwn();
    await query("INSERT INTO meta (name, value) VALUES ('filler', hex(zeroblob(40000000)))");
    const folder = tempDir('backups');
    const { child, exited, output } = spawnGpd(['backup', join(folder, 'b')], {
      env: { GPD_DATA_DIR: dataDir },
    });
    const copies = (): string[] => readdirSync(dataDir).filter((name) => name.startsWith('staging-'));
    await expect.poll(copies, { interval: 2, timeout: 10_000 }).toHaveLength(1);
    child.kill(signal);
    expect(await exited).toEqual({ code: 1, signal: null });
    expect(output.stderr).toBe('gpd: interrupted; unfinished files were removed\n');
    expect(copies()).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  });
});
