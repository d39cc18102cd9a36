import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runProgram, type Spawned, spawnGpd, tempDir } from '../../support/command.ts';
import { ask } from '../../support/http.ts';

/** `gpd serve --setup`: when it refuses to start, and who can use its page. */

it('refuses with 78 a data directory that is not empty, and an address that others reach', async () => {
  const serve = (data: string, ...flags: string[]) =>
    runProgram(['serve', '--setup', '--port', '0', ...flags], { env: { GPD_DATA_DIR: data } });
  const full = tempDir('data');
  writeFileSync(join(full, 'note'), '');
  const refused = await serve(full);
  expect(refused).toMatchObject({ code: 78, stdout: '' });
  expect(refused.stderr).toContain('is not empty');
  for (const host of ['0.0.0.0', '::', 'gpd.example']) {
    const ran = await serve(tempDir('data'), '--host', host);
    expect(ran).toMatchObject({ code: 78, stdout: '' });
    expect(ran.stderr).toContain('--host 127.0.0.1');
  }
});

const FORM = {
  tenant: 'shop',
  origin: 'https://shop.example',
  baseUrl: 'https://id.shop.example',
  controller: 'Shop Ltd',
  contact: 'a@b.c',
};

/** @param options before the command */
async function startSetup(...options: string[]) {
  const data = join(tempDir('data'), 'new');
  mkdirSync(data);
  const args = [...options, 'serve', '--setup', '--port', '0', '--json'];
  const gpd = spawnGpd(args, { env: { GPD_DATA_DIR: data } });
  await vi.waitFor(() => expect(gpd.output.stdout).toContain('\n'), { timeout: 60_000, interval: 50 });
  const link = new URL((JSON.parse(gpd.output.stdout) as { setup: string }).setup);
  return { gpd, url: link.origin, token: link.searchParams.get('token') ?? '' };
}

const postTo = (
  url: string,
  path: string,
  form: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
) =>
  ask(url, path, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: url, ...headers },
    body: new URLSearchParams(form).toString(),
  });

describe('the page', () => {
  let gpd: Spawned;
  let url: string;
  let token: string;

  beforeAll(async () => {
    ({ gpd, url, token } = await startSetup());
  });
  afterAll(async () => {
    gpd.child.kill('SIGTERM');
    await gpd.exited;
  });

  const post = (path: string, form: Readonly<Record<string, string>>, headers = {}) =>
    postTo(url, path, form, headers);

  it('is all that there is', async () => {
    for (const path of ['/', '/docs', '/assets/base.css', '/v1/agent.js', '/console', '/setup/visit'])
      expect({ path, status: (await ask(url, path)).status }).toEqual({ path, status: 404 });
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
    expect((await post('/setup/begin', { token: 'wrong' })).status).toBe(403);
    expect((await post('/setup/begin', { token }, { origin: 'https://evil.example' })).status).toBe(403);
    expect((await post('/setup', FORM)).status).toBe(401);
  });

  it('is opened by the link once, and the form needs its token', async () => {
    // Opening the page does not use the link up.
    for (let i = 0; i < 2; i += 1) expect((await ask(url, `/setup?token=${token}`)).status).toBe(200);
    const beginning = await post('/setup/begin', { token });
    expect(beginning.status).toBe(303);
    const [header = ''] = [beginning.headers['set-cookie']].flat();
    expect(header).toMatch(/; HttpOnly; SameSite=Strict; Path=\/setup; Max-Age=3600$/);
    const cookie = header.split(';')[0] ?? '';
    expect((await post('/setup/begin', { token })).status).toBe(403);
    expect((await ask(url, `/setup?token=${token}`)).status).toBe(403);
    expect((await ask(url, '/setup', { headers: { cookie } })).status).toBe(200);
    expect((await post('/setup', { ...FORM, csrf: 'wrong' }, { cookie })).status).toBe(401);
    expect(gpd.output.stderr).not.toContain(token);
  });
});

it('adds the base URL to a configuration file whose last line has no end', async () => {
  const file = join(tempDir('config'), 'gpd.toml');
  writeFileSync(file, 'log_level = "warn"');
  const { gpd, url, token } = await startSetup('--config', file);
  const [header = ''] = [(await postTo(url, '/setup/begin', { token })).headers['set-cookie']].flat();
  const cookie = header.split(';')[0] ?? '';
  const page = (await ask(url, '/setup', { headers: { cookie } })).text;
  const csrf = /name="csrf" value="([\w-]+)"/.exec(page)?.[1] ?? '';
  expect((await postTo(url, '/setup', { ...FORM, csrf }, { cookie })).status).toBe(200);
  gpd.child.kill('SIGTERM');
  await gpd.exited;
  expect(readFileSync(file, 'utf8')).toBe(`log_level = "warn"\nbase_url = "${FORM.baseUrl}"\n`);
});
