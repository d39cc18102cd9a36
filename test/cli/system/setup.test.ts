import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runGpd, type Spawned, spawnGpd, tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { englishWords } from '../../support/english.ts';
import { ask } from '../../support/http.ts';
import { initGpd } from '../../support/server.ts';
import { FORM, openForm, postTo, readLink, startSetup } from '../support/setup.ts';

/** `gpd serve --setup` as a program: who can use its page, and that it may be killed. */

/** @param options before the command */
async function startProgram(data: string, ...options: string[]) {
  mkdirSync(data, { recursive: true });
  const args = [...options, 'serve', '--setup', '--port', '0', '--json'];
  const gpd = spawnGpd(args, { env: { GPD_DATA_DIR: data } });
  await vi.waitFor(() => expect(gpd.output.stdout).toContain('\n'));
  return { gpd, ...readLink((JSON.parse(gpd.output.stdout) as { setup: string }).setup) };
}

describe('the page', () => {
  let gpd: Spawned;
  let url: string;
  let token: string;

  beforeAll(async () => {
    ({ gpd, url, token } = await startProgram(join(tempDir('data'), 'new')));
  });
  afterAll(async () => {
    gpd.child.kill('SIGTERM');
    await gpd.exited;
  });

  it('is all that there is', async () => {
    for (const path of [
      '/docs',
      '/assets/base.css',
      '/v1/agent.js',
      '/console',
      '/setup/steps',
      '/setup/key',
    ])
      expect({ path, status: (await ask(url, path)).status }).toEqual({ path, status: 404 });
  });

  it('leads from / to the link without telling it, and elsewhere to this machine', async () => {
    const here = await ask(url, '/');
    expect(here.status).toBe(503);
    expect(here.text).toContain('Open the link that <code>gpd serve --setup</code> has printed');
    const elsewhere = await ask(url, '/', { headers: { host: 'gpd.example' } });
    expect(elsewhere.status).toBe(403);
    expect(elsewhere.text).toContain('ssh -L');
    for (const { text } of [here, elsewhere]) expect(text).not.toContain(token);
  });

  it('leaves the server alive, and not ready', async () => {
    const alive = await ask(url, '/healthz');
    expect(alive.status).toBe(200);
    expect(alive.json()).toEqual({ status: 'ok', version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
    const ready = await ask(url, '/readyz');
    expect(ready.status).toBe(503);
    expect(ready.json()).toMatchObject({ status: 'not-ready', notReady: [expect.stringContaining('link')] });
  });

  it('is for a Host of this machine alone', async () => {
    for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', '10.0.0.1'])
      expect((await ask(url, `/setup?token=${token}`, { headers: { host } })).status).toBe(403);
  });

  it('is refused without the link, from another site, and without its own token', async () => {
    expect((await ask(url, '/setup?token=wrong')).status).toBe(403);
    expect((await postTo(url, '/setup/begin', { token: 'wrong' })).status).toBe(403);
    expect((await postTo(url, '/setup/begin', { token }, { origin: 'https://evil.example' })).status).toBe(
      403,
    );
    expect((await postTo(url, '/setup', FORM)).status).toBe(401);
  });

  it('is opened by the link once, and the form needs its token', async () => {
    // Opening the page does not use the link up.
    for (let i = 0; i < 2; i += 1) {
      const page = await ask(url, `/setup?token=${token}`, { headers: { 'accept-language': 'de' } });
      expect([page.status, englishWords(page.text)]).toEqual([200, []]);
    }
    const beginning = await postTo(url, '/setup/begin?lang=de', { token });
    expect([beginning.status, beginning.headers.location]).toEqual([303, '/setup?lang=de']);
    const [header = ''] = [beginning.headers['set-cookie']].flat();
    expect(header).toMatch(/; HttpOnly; SameSite=Strict; Path=\/setup; Max-Age=3600$/);
    const cookie = header.split(';')[0] ?? '';
    expect((await postTo(url, '/setup/begin', { token })).status).toBe(403);
    expect((await ask(url, `/setup?token=${token}`)).status).toBe(403);
    expect((await ask(url, '/setup', { headers: { cookie } })).status).toBe(200);
    expect((await postTo(url, '/setup', { ...FORM, csrf: 'wrong' }, { cookie })).status).toBe(401);
    expect(gpd.output.stderr).not.toContain(token);
  });
});

it('can be repeated after it was killed at any moment, and each message names the command', async () => {
  for (const appears of ['setup.unfinished', 'master.key', 'gpd.db', 'checkpoints.log']) {
    const data = join(tempDir('data'), 'new');
    const file = join(tempDir('config'), 'gpd.toml');
    writeFileSync(file, '');
    const first = await startProgram(data, '--config', file);
    const { cookie, csrf } = await openForm(first.url, first.token);
    void postTo(first.url, '/setup', { ...FORM, csrf }, { cookie }).catch(() => {});
    await vi.waitFor(() => expect(readdirSync(data)).toContain(appears), { interval: 1 });
    first.gpd.child.kill('SIGKILL');
    await first.gpd.exited;
    if (existsSync(join(data, 'setup.unfinished'))) {
      const serve = await runGpd(['--config', file, 'serve', '--port', '0'], {
        env: { GPD_DATA_DIR: data },
      });
      expect(serve).toMatchObject({ code: 78, stderr: expect.stringContaining('gpd serve --setup') });
      const again = await startSetup(data, file);
      const reply = await postTo(
        again.url,
        '/setup',
        { ...FORM, csrf: again.csrf },
        { cookie: again.cookie },
      );
      const alert = /role="alert"[\s\S]*?<\/\w+>/.exec(reply.text)?.[0];
      expect({ appears, status: reply.status, alert }).toEqual({ appears, status: 200 });
      await again.stop();
    }
    const { stdout } = await runGpd(['--config', file, 'tenants', 'list', '--json'], {
      env: { GPD_DATA_DIR: data },
    });
    expect(stdout).toContain('"shop"');
    expect(readdirSync(data)).not.toContain('setup.unfinished');
    const heads = await execute(data, 'SELECT origin FROM ledger_heads');
    expect(heads).toEqual([{ origin: 'id.shop.example/ledger/shop' }]);
  }
});

it('an installation without a tenant says at / and at the start how to add one', async () => {
  const { dataDir } = await initGpd();
  const env = { GPD_DATA_DIR: dataDir };
  expect(await runGpd(['tenants', 'remove', KID, '--yes'], { env })).toMatchObject({ code: 0 });
  const gpd = spawnGpd(['serve', '--port', '0', '--json'], { env });
  await vi.waitFor(() => expect(gpd.output.stdout).toContain('\n'));
  const { url } = JSON.parse(gpd.output.stdout) as { url: string };
  await vi.waitFor(() => expect(gpd.output.stderr).toContain('gpd tenants add'));
  const root = () => ask(url, '/', { headers: { accept: 'text/html' } });
  expect((await root()).text).toContain('gpd tenants add');
  await runGpd(['tenants', 'add', KID, '--origin', 'https://shop.example'], { env });
  await vi.waitFor(async () => expect((await root()).text).not.toContain('gpd tenants add'));
  gpd.child.kill('SIGTERM');
  await gpd.exited;
});
