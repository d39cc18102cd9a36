import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { createOwn } from './support/own.ts';

/** The server's user owns the data directory: links in it must not lead commands that root runs to other files. */

async function withLink(name: string, content: string | null) {
  const { dataDir, gpd } = await createOwn();
  await gpd(`consent grant ${KID} anna device-identification`);
  const elsewhere = tempDir('elsewhere');
  const target = join(elsewhere, 'target');
  if (content !== null) writeFileSync(target, content);
  rmSync(join(dataDir, name), { force: true });
  symlinkSync(target, join(dataDir, name));
  return { gpd, elsewhere, target };
}

// Guards against: root created the file that a dangling link named, and gave it to the server's user.
it.each(['erasures.log', 'erasures.log.lock', 'gpd.lock', 'gpd.db'])(
  'no file is made through a link at %s',
  async (name) => {
    const { gpd, elsewhere } = await withLink(name, null);
    const erased = await gpd(`erase --tenant ${KID} --principal anna --yes`);
    await gpd(`init --tenant ${KID} --origin https://shop.example`);
    expect(erased.code).not.toBe(0);
    expect(readdirSync(elsewhere)).toEqual([]);
  },
);

it('a link at checkpoints.log is not written through', async () => {
  for (const name of ['checkpoints.log', 'checkpoints.log.lock']) {
    const { gpd, target } = await withLink(name, 'of root\n');
    await gpd(`consent verify ${KID}`);
    await gpd('erase resume');
    await gpd(`consent checkpoint ${KID}`);
    expect(readFileSync(target, 'utf8'), name).toBe('of root\n');
  }
});

// Guards against: a backup carried the lines of any file that root can read, and the server's user holds the key of the backup.
it('a backup carries no file that a link at erasures.log leads to', async () => {
  const { gpd } = await withLink('erasures.log', 'root:secret\n');
  const file = join(tempDir('backups'), 'b');
  const ran = await gpd('backup', file);
  expect(ran).toMatchObject({ code: 78, stderr: expect.stringContaining('erasures.log is a symbolic link') });
  expect(existsSync(file)).toBe(false);
});
