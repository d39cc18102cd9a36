import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { gpdJson, type Ran, runGpd, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { expectCore, post } from '../support/expect.ts';
import { createBundle } from '../support/seal.ts';
import { initGpd, startGpd } from '../support/server.ts';

const serve = (env: Record<string, string>): Promise<Ran> => runGpd(['serve', '--port', '0'], { env });

function expectRefused(ran: Ran): void {
  expect(ran).toMatchObject({ code: 78, stdout: '' });
  expect(ran.stderr).toMatch(/^gpd: .*master key/);
  expect(ran.stderr.trim().split('\n')).toHaveLength(1);
  expect(ran.stderr).not.toMatch(/\bat .*:\d+:\d+/);
}

describe.concurrent('the master key', () => {
  it('missing: a refusal to start in a plain sentence, never a new key', async () => {
    const { dataDir } = await initGpd();
    rmSync(join(dataDir, 'master.key'));
    for (const args of [
      ['serve', '--port', '0'],
      ['keys', 'rotate', KID],
      ['tenants', 'add', 'x'],
    ]) {
      expectRefused(await runGpd(args, { env: { GPD_DATA_DIR: dataDir } }));
    }
    expect(readdirSync(dataDir).filter((name) => name.startsWith('master'))).toEqual([]);
  });

  it('wrong: the same, and the wrong one stays as it is', async () => {
    const { dataDir } = await initGpd();
    const invalidKey = randomBytes(32).toString('base64');
    writeFileSync(join(dataDir, 'master.key'), invalidKey);
    const ran = await serve({ GPD_DATA_DIR: dataDir });
    expectRefused(ran);
    expect(ran.stderr).not.toContain(invalidKey);
    expect(readFileSync(join(dataDir, 'master.key'), 'utf8')).toBe(invalidKey);
  });

  it.each([
    ['empty', ''],
    ['too long', randomBytes(33).toString('base64')],
    ['hex', randomBytes(32).toString('hex')],
  ])('%s: the same', async (_name, content) => {
    const { dataDir } = await initGpd();
    writeFileSync(join(dataDir, 'master.key'), content);
    expectRefused(await serve({ GPD_DATA_DIR: dataDir }));
  });

  it('comes from GPD_MASTER_KEY_FILE, and then none is made in the data directory', async () => {
    const file = join(tempDir('key'), 'mine');
    writeFileSync(file, `${randomBytes(32).toString('base64')}\n`);
    const dataDir = join(tempDir('data'), 'gpd-data');
    const settings = { GPD_MASTER_KEY_FILE: file };
    const created = await gpdJson<{ publicKey: string }>(['init', '--tenant', KID], {
      env: { GPD_DATA_DIR: dataDir, ...settings },
    });
    expect(existsSync(join(dataDir, 'master.key'))).toBe(false);
    const gpd = await startGpd({ dataDir, settings });
    const target = { kid: KID, publicKey: Buffer.from(created.publicKey, 'base64') };
    expectCore(await post(gpd.url, createBundle(target)), 'ok');
    await gpd.stop();
    expectRefused(await serve({ GPD_DATA_DIR: dataDir }));
  });

  it('GPD_MASTER_KEY_FILE that is not there: a refusal, by init too', async () => {
    const dataDir = join(tempDir('data'), 'gpd-data');
    const env = { GPD_DATA_DIR: dataDir, GPD_MASTER_KEY_FILE: join(tempDir('key'), 'none') };
    expectRefused(await runGpd(['init', '--tenant', KID], { env }));
    expect(existsSync(env.GPD_MASTER_KEY_FILE)).toBe(false);
    expect(existsSync(join(dataDir, 'gpd.db'))).toBe(false);
  });

  it('comes from $CREDENTIALS_DIRECTORY/master-key of systemd, as 32 bytes too', async () => {
    const credentials = tempDir('credentials');
    writeFileSync(join(credentials, 'master-key'), randomBytes(32));
    const dataDir = join(tempDir('data'), 'gpd-data');
    const settings = { CREDENTIALS_DIRECTORY: credentials };
    await gpdJson(['init', '--tenant', KID], { env: { GPD_DATA_DIR: dataDir, ...settings } });
    expect(existsSync(join(dataDir, 'master.key'))).toBe(false);
    const gpd = await startGpd({ dataDir, settings });
    await gpd.stop();
    expectRefused(await serve({ GPD_DATA_DIR: dataDir }));
  });

  it('is never printed', async () => {
    const { dataDir } = await initGpd();
    const key = readFileSync(join(dataDir, 'master.key'), 'utf8').trim();
    for (const args of [
      ['tenants', 'list'],
      ['keys', 'list'],
      ['keys', 'rewrap', '--dry-run'],
      ['keys', 'rewrap', '--yes'],
    ]) {
      const ran = await runGpd([...args, '--json'], { env: { GPD_DATA_DIR: dataDir } });
      const now = readFileSync(join(dataDir, 'master.key'), 'utf8').trim();
      expect(ran.code).toBe(0);
      for (const secret of [key, now]) expect(ran.stdout + ran.stderr).not.toContain(secret);
    }
  });
});
