import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runProgram, type Spawned, spawnGpd, tempDir } from '../../support/command.ts';
import { execute } from '../../support/database.ts';
import { englishWords } from '../../support/english.ts';
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

/** @param data the data directory @param options before the command */
async function startSetup(data: string, ...options: string[]) {
  mkdirSync(data, { recursive: true });
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
    ({ gpd, url, token } = await startSetup(join(tempDir('data'), 'new')));
  });
  afterAll(async () => {
    gpd.child.kill('SIGTERM');
    await gpd.exited;
  });

  const post = (path: string, form: Readonly<Record<string, string>>, headers = {}) =>
    postTo(url, path, form, headers);

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

/** The link's session, and the form's own token. */
async function openForm(url: string, token: string) {
  const [header = ''] = [(await postTo(url, '/setup/begin', { token })).headers['set-cookie']].flat();
  const cookie = header.split(';')[0] ?? '';
  const page = (await ask(url, '/setup', { headers: { cookie } })).text;
  return { cookie, csrf: /name="csrf" value="([\w-]+)"/.exec(page)?.[1] ?? '' };
}

it('can be repeated after it was killed at any moment, and each message names the command', async () => {
  for (const appears of ['setup.unfinished', 'master.key', 'gpd.db', 'checkpoints.log']) {
    const data = join(tempDir('data'), 'new');
    const file = join(tempDir('config'), 'gpd.toml');
    writeFileSync(file, '');
    const first = await startSetup(data, '--config', file);
    const { cookie, csrf } = await openForm(first.url, first.token);
    void postTo(first.url, '/setup', { ...FORM, csrf }, { cookie }).catch(() => {});
    await vi.waitFor(() => expect(readdirSync(data)).toContain(appears), { timeout: 60_000, interval: 1 });
    first.gpd.child.kill('SIGKILL');
    await first.gpd.exited;
    if (existsSync(join(data, 'setup.unfinished'))) {
      const serve = await runProgram(['--config', file, 'serve', '--port', '0'], {
        env: { GPD_DATA_DIR: data },
      });
      expect(serve).toMatchObject({ code: 78, stderr: expect.stringContaining('gpd serve --setup') });
      const again = await startSetup(data, '--config', file);
      const form = await openForm(again.url, again.token);
      const reply = await postTo(again.url, '/setup', { ...FORM, csrf: form.csrf }, { cookie: form.cookie });
      const alert = /role="alert"[\s\S]*?<\/\w+>/.exec(reply.text)?.[0];
      expect({ appears, status: reply.status, alert }).toEqual({ appears, status: 200 });
      again.gpd.child.kill('SIGTERM');
      await again.gpd.exited;
    }
    const { stdout } = await runProgram(['--config', file, 'tenants', 'list', '--json'], {
      env: { GPD_DATA_DIR: data },
    });
    expect(stdout).toContain('"shop"');
    expect(readdirSync(data)).not.toContain('setup.unfinished');
    const heads = await execute(data, 'SELECT origin FROM ledger_heads');
    expect(heads).toEqual([{ origin: 'id.shop.example/ledger/shop' }]);
  }
});

it('an address of digits is refused in the form, with the words of the sign-in, and the link has a name', async () => {
  const { gpd, url, token } = await startSetup(join(tempDir('data'), 'new'));
  expect(new URL(url).hostname).toBe('localhost');
  const { cookie, csrf } = await openForm(url, token);
  const errorAt = async (field: string, value: string) => {
    const form = { ...FORM, csrf, [field]: value };
    const { status, text } = await postTo(url, '/setup', form, { cookie });
    expect(status).toBe(422);
    return new RegExp(`id="${field}-hint">.*?role="alert">([^<]*)<`, 's').exec(text)?.[1];
  };
  for (const field of ['baseUrl', 'origin'])
    for (const value of [url.replace('localhost', '127.0.0.1'), 'https://192.0.2.7', 'https://[2001:db8::1]'])
      expect(await errorAt(field, value)).toBe(
        'Enter a name, not an address of digits: browsers make passkeys for a name such as localhost, not for an address of digits.',
      );
  for (const value of ['', 'id.shop.example', 'https://id.shop.example/a'])
    expect(await errorAt('baseUrl', value)).toBe(
      'Enter the address people will use, e.g. https://id.shop.example',
    );
  expect(await errorAt('origin', '')).toBe('Enter the address of the website, e.g. https://shop.example');
  expect(await errorAt('contact', ' ')).toBe('Enter a contact.');
  expect(await errorAt('tenant', 'a|b')).toMatch(/^Enter a short name: /);
  gpd.child.kill('SIGTERM');
  await gpd.exited;
});

it('in German has no English sentence, from the link to the page Next, and keeps the choice', async () => {
  const { gpd, url, token } = await startSetup(join(tempDir('data'), 'new'));
  const german = { 'accept-language': 'de-DE, en;q=0.5' };
  const shown: string[] = [];
  const expectGerman = ({ text, headers }: Awaited<ReturnType<typeof ask>>) => {
    expect(headers).toMatchObject({ 'content-language': 'de', vary: expect.stringContaining('Language') });
    expect(text).toContain('<html lang="de"');
    expect({ title: /<title>(.*?)</.exec(text)?.[1], english: englishWords(text) }).toMatchObject({
      english: [],
    });
    shown.push(text);
  };
  const get = async (path: string, headers = {}) => ask(url, path, { headers: { ...german, ...headers } });
  expectGerman(await get('/'));
  expectGerman(await get('/', { host: 'gpd.example' }));
  expectGerman(await get('/setup?token=wrong'));
  expectGerman(await get('/setup', { host: 'evil.example', accept: 'text/html' }));
  expectGerman(await get(`/setup?token=${token}`));
  const begun = await postTo(url, '/setup/begin?lang=de', { token });
  expect(begun.headers.location).toBe('/setup?lang=de');
  const cookie = [begun.headers['set-cookie']].flat()[0]?.split(';')[0] ?? '';
  const form = await ask(url, '/setup?lang=de', { headers: { cookie } });
  expectGerman(form);
  expect(form.text).toContain('action="/setup?lang=de"');
  expect(form.text).toContain('href="?lang=pl"');
  const csrf = /name="csrf" value="([\w-]+)"/.exec(form.text)?.[1] ?? '';
  const post = (path: string, fields: object) =>
    postTo(
      url,
      `${path}?lang=de`,
      { ...FORM, baseUrl: url, csrf, ...fields },
      { cookie, accept: 'text/html' },
    );
  for (const fields of [
    { tenant: '', origin: '', baseUrl: '', contact: '' },
    { origin: 'shop.example', baseUrl: 'https://192.0.2.7', contact: 'x'.repeat(4001) },
    { origin: 'https://*.shop.example' },
  ]) {
    const refused = await post('/setup', fields);
    expect(refused.status).toBe(422);
    expectGerman(refused);
    // A switch would lose what was typed.
    expect(refused.text).not.toContain('hreflang');
  }
  for (const fields of [{ csrf: 'wrong' }, { contact: 'x'.repeat(70_000) }]) {
    const refused = await post('/setup', fields);
    expect([401, 413]).toContain(refused.status);
    expectGerman(refused);
  }
  expectGerman(await post('/setup', {}));
  await vi.waitFor(async () => expect((await ask(url, '/readyz')).status).toBe(200), {
    timeout: 60_000,
    interval: 50,
  });
  expectGerman(await post('/setup/invite', { name: 'a@b.example', role: 'owner' }));
  expectGerman(await post('/setup/invite', { name: 'Rosa', role: 'dpo' }));
  expectGerman(await post('/setup/key', {}));
  expectGerman(await get('/setup', { cookie }));
  expectGerman(await get('/console/join'));
  expect(shown.join('')).not.toMatch(/\{\w+\}/);
  gpd.child.kill('SIGTERM');
  await gpd.exited;
});

it('refuses to start with a base URL of digits', async () => {
  const env = { GPD_DATA_DIR: tempDir('data'), GPD_BASE_URL: 'http://127.0.0.1:8080' };
  const refused = await runProgram(['serve', '--setup', '--port', '0'], { env });
  expect(refused).toMatchObject({ code: 78, stdout: '' });
  expect(refused.stderr).toContain('not for an address of digits');
});

it('adds the base URL to a configuration file whose last line has no end', async () => {
  const file = join(tempDir('config'), 'gpd.toml');
  writeFileSync(file, 'log_level = "warn"');
  const { gpd, url, token } = await startSetup(join(tempDir('data'), 'new'), '--config', file);
  const { cookie, csrf } = await openForm(url, token);
  expect((await postTo(url, '/setup', { ...FORM, csrf }, { cookie })).status).toBe(200);
  gpd.child.kill('SIGTERM');
  await gpd.exited;
  expect(readFileSync(file, 'utf8')).toBe(`log_level = "warn"\nbase_url = "${FORM.baseUrl}"\n`);
});

it('the browser of the setup invites the first member of the staff, nobody else does, and no second one', async () => {
  const data = join(tempDir('data'), 'new');
  const { gpd, url, token } = await startSetup(data);
  const { cookie, csrf } = await openForm(url, token);
  const early = await postTo(url, '/setup/invite', { csrf, name: 'Rosa', role: 'dpo' }, { cookie });
  expect(early.status).toBe(404);
  expect((await postTo(url, '/setup', { ...FORM, baseUrl: url, csrf }, { cookie })).status).toBe(200);
  await vi.waitFor(async () => expect((await ask(url, '/readyz')).status).toBe(200), {
    timeout: 60_000,
    interval: 50,
  });
  const invite = (form: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>>) =>
    postTo(url, '/setup/invite', { csrf, name: 'Mallory', role: 'dpo', ...form }, headers);
  expect((await invite({}, {})).status).toBe(404);
  expect((await invite({}, { cookie: 'gpd_setup=guess' })).status).toBe(404);
  expect((await invite({}, { cookie, origin: 'https://evil.example' })).status).toBe(403);
  expect((await invite({}, { cookie, host: 'evil.example' })).status).toBe(403);
  expect((await invite({ csrf: 'guess' }, { cookie })).status).toBe(401);
  expect((await invite({ role: 'owner' }, { cookie })).status).toBe(422);
  const atOnce = await Promise.all(['Rosa', 'Remy', 'Dora'].map((name) => invite({ name }, { cookie })));
  expect(atOnce.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409, 409]);
  const invited = atOnce.find(({ status }) => status === 200)!;
  expect(invited).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } });
  const [, secret = ''] = /join#\w+\.([\w-]{43})/.exec(invited.text) ?? [];
  expect(secret).not.toBe('');
  const second = await invite({}, { cookie });
  expect(second.status).toBe(409);
  expect(second.text).not.toContain('join#');
  const env = { GPD_DATA_DIR: data };
  const listed = await runProgram(['staff', 'list', '--json'], { env });
  expect(JSON.parse(listed.stdout)).toMatchObject([{ role: 'dpo', joinedAt: null }]);
  const audit = await runProgram(['audit', 'shop', '--action', 'staff.invited', '--json'], { env });
  expect(audit.stdout).toContain('"setup"');
  expect(gpd.output.stdout + gpd.output.stderr).not.toContain(secret);
  gpd.child.kill('SIGTERM');
  await gpd.exited;
});

it('the browser of the setup makes the first secret key, sees it once, and what was done is ticked', async () => {
  const data = join(tempDir('data'), 'new');
  const { gpd, url, token } = await startSetup(data);
  const { cookie, csrf } = await openForm(url, token);
  const next = await postTo(url, '/setup', { ...FORM, baseUrl: url, csrf }, { cookie });
  expect(next.text).toContain('Read docs/llms.txt of gpd first');
  await vi.waitFor(async () => expect((await ask(url, '/readyz')).status).toBe(200), {
    timeout: 60_000,
    interval: 50,
  });
  const steps = async () => (await ask(url, '/setup/steps', { headers: { cookie } })).json();
  const NOTHING_DONE = { pages: false, check: false, staff: false, paper: false, backup: false };
  expect(await steps()).toEqual(NOTHING_DONE);
  expect((await ask(url, '/setup/steps')).status).toBe(404);
  expect((await postTo(url, '/setup/key', { csrf })).status).toBe(404);
  expect((await postTo(url, '/setup/key', { csrf: 'guess' }, { cookie })).status).toBe(401);
  const foreign = { cookie, origin: 'https://evil.example' };
  expect((await postTo(url, '/setup/key', { csrf }, foreign)).status).toBe(403);
  const shown = await postTo(url, '/setup/key', { csrf }, { cookie });
  expect(shown).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } });
  const [secret = ''] = /gpd_sk_[\w-]+/.exec(shown.text) ?? [];
  for (const language of ['Node', 'Python', 'Go', 'Java'])
    expect(shown.text).toContain(`<summary>${language}</summary>`);
  const again = await postTo(url, '/setup/key', { csrf }, { cookie });
  expect(again.status).toBe(409);
  expect(again.text).not.toContain('gpd_sk_');
  expect((await ask(url, '/setup', { headers: { cookie } })).text).not.toContain('gpd_sk_');
  // The line of the page for a terminal.
  const check = await ask(url, '/v1/consent/can-process', {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: '{"principalId":"u-1","purpose":"device-identification"}',
  });
  expect(check.json()).toMatchObject({ allowed: false, reason: 'never-asked' });
  const env = { GPD_DATA_DIR: data };
  expect(await runProgram(['backup', tempDir('backup')], { env })).toMatchObject({ code: 0 });
  await vi.waitFor(async () => expect(await steps()).toEqual({ ...NOTHING_DONE, check: true, backup: true }));
  const audit = await runProgram(['audit', 'shop', '--action', 'apikey.created', '--json'], { env });
  expect(audit.stdout).toContain('"setup"');
  expect(gpd.output.stdout + gpd.output.stderr).not.toContain(secret);
  gpd.child.kill('SIGTERM');
  await gpd.exited;
});

it('serve without an installation names the page of --setup where it would be allowed', async () => {
  const serve = (...flags: string[]) =>
    runProgram(['serve', '--port', '0', ...flags], { env: { GPD_DATA_DIR: join(tempDir('data'), 'new') } });
  const here = await serve();
  expect(here).toMatchObject({ code: 78, stderr: expect.stringContaining('gpd init --tenant') });
  expect(here.stderr).toContain('gpd serve --setup');
  const reachable = await serve('--host', '0.0.0.0');
  expect(reachable).toMatchObject({ code: 78, stderr: expect.stringContaining('gpd init --tenant') });
  expect(reachable.stderr).not.toContain('--setup');
});

it('an installation without a tenant says at / and at the start how to add one', async () => {
  const env = { GPD_DATA_DIR: tempDir('data') };
  await runProgram(['init', '--tenant', 'shop'], { env });
  expect(await runProgram(['tenants', 'remove', 'shop', '--yes'], { env })).toMatchObject({ code: 0 });
  const gpd = spawnGpd(['serve', '--port', '0', '--json'], { env });
  await vi.waitFor(() => expect(gpd.output.stdout).toContain('\n'), { timeout: 60_000, interval: 50 });
  const { url } = JSON.parse(gpd.output.stdout) as { url: string };
  await vi.waitFor(() => expect(gpd.output.stderr).toContain('gpd tenants add'));
  const root = () => ask(url, '/', { headers: { accept: 'text/html' } });
  expect((await root()).text).toContain('gpd tenants add');
  await runProgram(['tenants', 'add', 'shop', '--origin', 'https://shop.example'], { env });
  await vi.waitFor(async () => expect((await root()).text).not.toContain('gpd tenants add'), 10_000);
  gpd.child.kill('SIGTERM');
  await gpd.exited;
});
