import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { runGpd, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { englishWords } from '../support/english.ts';
import { ask } from '../support/http.ts';
import { initGpd } from '../support/server.ts';
import { FORM, postTo, startSetup } from './support/setup.ts';

/** `gpd serve --setup`: when it refuses to start, and what its browser may do; its page is in system/setup.test.ts. */

it('refuses with 78 a data directory that is not empty, and an address that others reach', async () => {
  const serve = (data: string, ...flags: string[]) =>
    runGpd(['serve', '--setup', '--port', '0', ...flags], { env: { GPD_DATA_DIR: data } });
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

it('an address of digits is refused in the form, with the words of the sign-in, and the link has a name', async () => {
  const { url, cookie, csrf, stop } = await startSetup(join(tempDir('data'), 'new'));
  expect(new URL(url).hostname).toBe('localhost');
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
  expect((await postTo(url, '/setup', { ...FORM, csrf }, { cookie })).status).toBe(200);
  await stop();
});

it('in German has no English sentence, from the form to the page Next, and keeps the choice', async () => {
  const { url, cookie, csrf, stop } = await startSetup(join(tempDir('data'), 'new'));
  const german = { 'accept-language': 'de-DE, en;q=0.5', accept: 'text/html' };
  const shown: string[] = [];
  const expectGerman = ({ text, headers }: Awaited<ReturnType<typeof ask>>) => {
    expect(headers).toMatchObject({ 'content-language': 'de', vary: expect.stringContaining('Language') });
    expect(text).toContain('<html lang="de"');
    expect({ title: /<title>(.*?)</.exec(text)?.[1], english: englishWords(text) }).toMatchObject({
      english: [],
    });
    shown.push(text);
  };
  const get = (path: string, headers = {}) => ask(url, path, { headers: { ...german, ...headers } });
  expectGerman(await get('/'));
  expectGerman(await get('/', { host: 'gpd.example' }));
  expectGerman(await get('/setup?token=wrong'));
  expectGerman(await get('/setup', { host: 'evil.example' }));
  const form = await ask(url, '/setup?lang=de', { headers: { cookie } });
  expectGerman(form);
  expect(form.text).toContain('action="/setup?lang=de"');
  expect(form.text).toContain('href="?lang=pl"');
  const post = (path: string, fields: object) => {
    const values = { ...FORM, baseUrl: url, csrf, ...fields };
    return postTo(url, `${path}?lang=de`, values, { cookie, accept: 'text/html' });
  };
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
  await vi.waitFor(async () => expect((await ask(url, '/readyz')).status).toBe(200));
  expectGerman(await post('/setup/invite', { name: 'a@b.example', role: 'owner' }));
  expectGerman(await post('/setup/invite', { name: 'Rosa', role: 'dpo' }));
  expectGerman(await post('/setup/key', {}));
  expectGerman(await get('/setup', { cookie }));
  expect(shown.join('')).not.toMatch(/\{\w+\}/);
  await stop();
});

it('after an interruption names the tenant that was made, in the language of the form', async () => {
  const { dataDir } = await initGpd();
  writeFileSync(join(dataDir, 'setup.unfinished'), '');
  const { url, cookie, csrf, stop } = await startSetup(dataDir);
  const send = (tenant: string) => postTo(url, '/setup?lang=de', { ...FORM, csrf, tenant }, { cookie });
  const refused = await send('other');
  expect(refused.status).toBe(422);
  expect(refused.text).toContain(`hat den Mandanten ${KID} angelegt: Geben Sie diesen kurzen Namen ein.`);
  expect(englishWords(refused.text)).toEqual([]);
  expect((await send(KID)).status).toBe(200);
  await stop();
});

it('refuses to start with a base URL of digits', async () => {
  const env = { GPD_DATA_DIR: tempDir('data'), GPD_BASE_URL: 'http://127.0.0.1:8080' };
  const refused = await runGpd(['serve', '--setup', '--port', '0'], { env });
  expect(refused).toMatchObject({ code: 78, stdout: '' });
  expect(refused.stderr).toContain('not for an address of digits');
});

it('adds the base URL to a configuration file whose last line has no end', async () => {
  const file = join(tempDir('config'), 'gpd.toml');
  writeFileSync(file, 'log_level = "warn"');
  const { url, cookie, csrf, stop } = await startSetup(join(tempDir('data'), 'new'), file);
  expect((await postTo(url, '/setup', { ...FORM, csrf }, { cookie })).status).toBe(200);
  await stop();
  expect(readFileSync(file, 'utf8')).toBe(`log_level = "warn"\nbase_url = "${FORM.baseUrl}"\n`);
});

it('the browser of the setup invites the first member of the staff, nobody else does, and no second one', async () => {
  const data = join(tempDir('data'), 'new');
  const { url, cookie, csrf, logs, stop } = await startSetup(data);
  const early = await postTo(url, '/setup/invite', { csrf, name: 'Rosa', role: 'dpo' }, { cookie });
  expect(early.status).toBe(404);
  expect((await postTo(url, '/setup', { ...FORM, baseUrl: url, csrf }, { cookie })).status).toBe(200);
  await vi.waitFor(async () => expect((await ask(url, '/readyz')).status).toBe(200));
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
  const listed = await runGpd(['staff', 'list', '--json'], { env });
  expect(JSON.parse(listed.stdout)).toMatchObject([{ role: 'dpo', joinedAt: null }]);
  const audit = await runGpd(['audit', 'shop', '--action', 'staff.invited', '--json'], { env });
  expect(audit.stdout).toContain('"setup"');
  expect(logs()).not.toContain(secret);
  await stop();
});

it('the browser of the setup makes the first secret key, sees it once, and what was done is ticked', async () => {
  const data = join(tempDir('data'), 'new');
  const { url, cookie, csrf, logs, stop } = await startSetup(data);
  const next = await postTo(url, '/setup', { ...FORM, baseUrl: url, csrf }, { cookie });
  expect(next.text).toContain('Read docs/llms.txt of gpd first');
  await vi.waitFor(async () => expect((await ask(url, '/readyz')).status).toBe(200));
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
  expect(await runGpd(['backup', tempDir('backup')], { env })).toMatchObject({ code: 0 });
  await vi.waitFor(async () => expect(await steps()).toEqual({ ...NOTHING_DONE, check: true, backup: true }));
  const audit = await runGpd(['audit', 'shop', '--action', 'apikey.created', '--json'], { env });
  expect(audit.stdout).toContain('"setup"');
  expect(logs()).not.toContain(secret);
  await stop();
});

it('serve without an installation names the page of --setup where it would be allowed', async () => {
  const serve = (...flags: string[]) =>
    runGpd(['serve', '--port', '0', ...flags], { env: { GPD_DATA_DIR: join(tempDir('data'), 'new') } });
  const here = await serve();
  expect(here).toMatchObject({ code: 78, stderr: expect.stringContaining('gpd init --tenant') });
  expect(here.stderr).toContain('gpd serve --setup');
  const reachable = await serve('--host', '0.0.0.0');
  expect(reachable).toMatchObject({ code: 78, stderr: expect.stringContaining('gpd init --tenant') });
  expect(reachable.stderr).not.toContain('--setup');
});
