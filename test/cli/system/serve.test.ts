import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { runGpd, tempDir } from '../../support/command.ts';
import { ask } from '../../support/http.ts';
import { type GpdProcess, startProcess } from '../../support/process.ts';

it('gpd serve reads its files anew on SIGHUP, and goes on', async () => {
  const gpd = await startProcess();
  process.kill(gpd.pid, 'SIGHUP');
  await vi.waitFor(() => expect(gpd.logs()).toContain('"event":"reloaded"'), { timeout: 20_000 });
  expect((await ask(gpd.url, '/readyz')).status).toBe(200);
  expect(await gpd.stop()).toMatchObject({ code: 0 });
});

describe('the first start of a container', () => {
  const first = {
    GPD_INIT_TENANT: 'shop',
    GPD_INIT_ORIGIN: 'https://shop.example, https://www.shop.example',
  };

  it('makes the installation and the tenant, and no later one changes anything', async () => {
    const dataDir = join(tempDir('data'), 'gpd-data');
    const start = (): Promise<GpdProcess> => startProcess({ dataDir, settings: first });
    const firstStart = await start();
    expect((await ask(firstStart.url, '/readyz')).status).toBe(200);
    const origins = ['https://shop.example', 'https://www.shop.example'];
    expect(await firstStart.json(['tenants', 'list'])).toMatchObject([
      { kid: 'shop', settings: { origins } },
    ]);
    await firstStart.json(['tenants', 'set', 'shop', 'origins=https://new.example']);
    await firstStart.stop();
    const key = readFileSync(join(dataDir, 'master.key'));
    const again = await start();
    expect(await again.json(['tenants', 'list'])).toMatchObject([
      { kid: 'shop', settings: { origins: ['https://new.example'] } },
    ]);
    expect(readFileSync(join(dataDir, 'master.key'))).toEqual(key);
    await again.json(['tenants', 'remove', 'shop', '--yes']);
    await again.stop();
    const last = await start();
    expect(await last.json(['tenants', 'list'])).toEqual([]);
    await last.stop();
  });

  it.each([
    ['GPD_INIT_TENANT', 'no name', /^gpd: GPD_INIT_TENANT /],
    ['GPD_INIT_ORIGIN', 'https://*.shop.example', /^gpd: GPD_INIT_ORIGIN .*wildcard/],
    ['GPD_DATABASE_URL_FILE', '/nowhere', /^gpd: cannot read GPD_DATABASE_URL_FILE/],
  ])('a bad %s is refused before anything is made', async (name, value, message) => {
    const dataDir = join(tempDir('data'), 'gpd-data');
    const env = { GPD_DATA_DIR: dataDir, ...first, [name]: value };
    const ran = await runGpd(['serve', '--port', '0'], { env });
    expect(ran).toMatchObject({ code: 78, stdout: '' });
    expect(ran.stderr).toMatch(message);
    expect(existsSync(dataDir)).toBe(false);
  });
});
