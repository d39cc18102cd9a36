import { spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../../src/config.ts';
import { restoreBackup } from '../../../../src/ops/restore-service.ts';
import { createOwn } from '../../../cli/support/own.ts';
import { PROGRAM, tempDir } from '../../../support/command.ts';
import { expectCore, post } from '../../../support/expect.ts';
import { startProcess } from '../../../support/process.ts';
import { createBundle } from '../../../support/seal.ts';

/** Overwrites the 16 bytes that identify a file of SQLite (sqlite.org/fileformat2.html, section 1.3.1). */
function overwriteHead(path: string, bytes: Buffer): void {
  const descriptor = openSync(path, 'r+');
  writeSync(descriptor, bytes, 0, 16, 0);
  closeSync(descriptor);
}

describe('gpd restore', () => {
  it('is refused beside a running server whose database nobody else can read', async () => {
    const gpd = await startProcess();
    const [path, backup] = [join(gpd.dataDir, 'gpd.db'), join(tempDir('backups'), 'b')];
    await gpd.json(['backup', backup]);
    // The server has this in memory and does not read the file again.
    expectCore(await post(gpd.url, createBundle(gpd.targets[0]!)), 'ok');
    const head = readFileSync(path).subarray(0, 16);
    const { ino } = statSync(path);
    overwriteHead(path, Buffer.alloc(16, 0xa5));
    const bundle = createBundle(gpd.targets[0]!);
    expectCore(await post(gpd.url, bundle), 'ok');
    const ran = await gpd.cli(['restore', backup, '--yes']);
    expect(ran).toMatchObject({ code: 7, stdout: '' });
    expect(ran.stderr).toMatch(/in use: stop the server/);
    expect(statSync(path).ino).toBe(ino);
    expectCore(await post(gpd.url, createBundle(gpd.targets[0]!)), 'ok');

    overwriteHead(path, head);
    await gpd.kill9();
    const again = await startProcess({ dataDir: gpd.dataDir });
    expectCore(await post(again.url, bundle), 'replay');
    await again.kill9();
    // The kernel released the lock when the process ended.
    overwriteHead(path, Buffer.alloc(16, 0xa5));
    expect(await gpd.cli(['restore', backup, '--yes'])).toMatchObject({ code: 0 });
    expect(statSync(path).ino).not.toBe(ino);
  });

  it('has the data for itself until the new database is in its place', async () => {
    const { dataDir, json } = await createOwn();
    const backup = join(tempDir('backups'), 'b');
    await json('backup', backup);
    const env = { PATH: process.env['PATH'], GPD_DATA_DIR: dataDir };
    // The restore is paused while another process runs.
    const options = { env, cwd: tempDir('cwd'), encoding: 'utf8', timeout: 15_000 } as const;
    const run = (...args: string[]) => spawnSync(process.execPath, [PROGRAM, ...args], options);
    const ran: Record<string, ReturnType<typeof run>> = {};
    await restoreBackup(loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} }), backup, {
      dryRun: false,
      by: { account: 'somebody', at: Date.now() },
      onProgress(stage) {
        if (stage !== 'checking') return;
        ran['restore'] = run('restore', backup, '--yes');
        ran['serve'] = run('serve', '--port', '0');
        ran['tenants'] = run('tenants', 'list');
      },
    });
    expect(ran['restore']).toMatchObject({ status: 7, stdout: '' });
    expect(ran['restore']?.stderr).toMatch(/in use: stop the server/);
    for (const name of ['serve', 'tenants']) {
      expect(ran[name], name).toMatchObject({ status: 75, stdout: '' });
      expect(ran[name]?.stderr, name).toMatch(/^gpd: a restore of .* is running; try again in a moment\n$/);
    }
    await json('tenants', 'list');
    expect(existsSync(join(dataDir, 'gpd.db.before-restore'))).toBe(false);
  });

  it.each([
    ['cannot be opened', (path: string) => mkdirSync(path), /cannot use .*gpd\.lock \(SQLITE_CANTOPEN\)/],
    ['is not empty', (path: string) => writeFileSync(path, 'x'.repeat(4096)), /gpd\.lock is not empty/],
  ])('says so in a sentence, as the server does, where the lock %s', async (_name, spoil, message) => {
    const { dataDir, gpd, json } = await createOwn();
    const backup = join(tempDir('backups'), 'b');
    await json('backup', backup);
    rmSync(join(dataDir, 'gpd.lock'));
    spoil(join(dataDir, 'gpd.lock'));
    for (const line of [`restore ${backup} --yes`, 'serve --port 0']) {
      const ran = await gpd(line);
      expect(ran).toMatchObject({ code: 78, stdout: '' });
      expect(ran.stderr).toMatch(message);
      expect(ran.stderr.trim().split('\n')).toHaveLength(1);
    }
  });

  it('shuts its lock against everybody else, in a directory from before there was one too', async () => {
    const { dataDir, json } = await createOwn();
    const path = join(dataDir, 'gpd.lock');
    rmSync(path);
    await json('tenants list');
    const { mode, size } = statSync(path);
    expect([mode & 0o777, size]).toEqual([0o600, 0]);
  });
});
