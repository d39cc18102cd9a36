import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServers } from './conformance/servers.ts';

/** Tries the package as it would be published, in an empty folder, following the README word by word. */

const HERE = fileURLToPath(new URL('..', import.meta.url));
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);

const BLOCK = /^```js\n([\s\S]*?)^```$/gm;
const blocks = [...readFileSync(join(HERE, 'README.md'), 'utf8').matchAll(BLOCK)].map(
  ([, code]) => code ?? '',
);

let folder: string;
let tarball: Buffer;
let started: Awaited<ReturnType<typeof startServers>>;
let environment: NodeJS.ProcessEnv;

async function node(file: string, code: string, ...args: string[]): Promise<string[]> {
  writeFileSync(join(folder, file), code);
  const { stdout } = await run(process.execPath, [file, ...args], { cwd: folder, env: environment });
  return stdout.trim().split('\n');
}

function linkExpress(): void {
  const link = join(folder, 'node_modules', 'express');
  if (!existsSync(link)) symlinkSync(join(ROOT, 'node_modules', 'express'), link);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gpd-consent-'));
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: HERE });
  const file = join(folder, stdout.trim().split('\n').at(-1) ?? '');
  tarball = readFileSync(file);
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', file], { cwd: folder });
  started = await startServers();
  const { url, keys, vkey } = started.servers;
  environment = {
    PATH: process.env['PATH'],
    GPD_CONSENT_URL: url,
    GPD_CONSENT_KEY: keys['secret'],
    LEDGER_VKEY: vkey,
  };
}, 120_000);

afterAll(async () => {
  await started.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('the package', () => {
  test('is as publint wants it', async () => {
    const packed = tarball.buffer.slice(
      tarball.byteOffset,
      tarball.byteOffset + tarball.length,
    ) as ArrayBuffer;
    const { messages, pkg } = await publint({ strict: true, pack: { tarball: packed } });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
  });

  test('holds what it needs and depends on nothing', () => {
    const installed = join(folder, 'node_modules', '@gpd', 'consent');
    const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as object;
    expect(Object.keys(manifest).filter((name) => name.toLowerCase().includes('dependencies'))).toEqual([]);
    expect(readFileSync(join(installed, 'LICENSE'), 'utf8')).toContain('Apache License');
  });

  test('does what the README shows', async () => {
    const [ask = '', reasons = '', errors = '', writes = '', , proofs = ''] = blocks;
    expect(ask).toContain('isAllowed');
    const output = await node(
      'readme.mjs',
      [ask, errors, reasons, proofs, writes, ask.split('\n\n')[2]].join('\n'),
    );
    const hash = "'[0-9a-f]{64}'";
    expect(output.join(' ')).toMatch(
      new RegExp(
        `^do not true granted \\{\\s+seq: \\d+,\\s+hash: ${hash}\\s+\\} consent\\.granted \\S+Z do not$`,
      ),
    );
  });

  test('signs and verifies a webhook as the README shows', async () => {
    const [verify = '', sign = ''] = blocks.slice(6);
    const body = JSON.stringify({ type: 'consent.withdrawn', timestamp: 'now', seq: 4, data: {} });
    const code = [
      `process.env.WEBHOOK_SECRET = 'whsec_${'A'.repeat(43)}=';\nconst rawBody = '${body}';`,
      sign,
      `const request = { headers };\n${verify}\nconsole.log(event.id, event.type);`,
    ];
    expect(await node('webhook.mjs', code.join('\n'))).toEqual(['evt_1 consent.withdrawn']);
  });

  test('has a fake as the README shows', async () => {
    const fake = blocks.at(-1) ?? '';
    const check = "console.log(await consent.isAllowed({ principalId: 'u-1', purpose: 'newsletter' }));";
    expect(await node('fake.mjs', `${fake}\n${check}`)).toEqual(['false']);
    const unbroken = fake.replace(/^consent\.setUnavailable.*$/m, '');
    expect(await node('fake.mjs', `${unbroken}\n${check}`)).toEqual(['true']);
  });

  test('brings types that tell a boolean from a decision', async () => {
    const source = `import { ConsentClient, type Decision } from '@gpd/consent';
      import { FakeConsent } from '@gpd/consent/fake';
      const clients = [ConsentClient.fromEnv(), new FakeConsent()] as const;
      export const allowed: boolean = await clients[0].isAllowed({ principalId: 'a', purpose: 'b' });
      export const decision: Decision = await clients[1].canProcess({ principalId: 'a', purpose: 'b' });
      // @ts-expect-error a decision is no boolean
      export const wrong: boolean = await clients[0].canProcess({ principalId: 'a', purpose: 'b' });`;
    writeFileSync(join(folder, 'types.ts'), source);
    const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
    const typed = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'];
    mkdirSync(join(folder, 'node_modules', '@types'), { recursive: true });
    for (const name of ['node', 'undici-types']) {
      const [from, to] = name === 'node' ? ['@types/node', '@types/node'] : [name, name];
      symlinkSync(join(ROOT, 'node_modules', from), join(folder, 'node_modules', to));
    }
    await run(process.execPath, [tsc, ...typed, 'types.ts'], { cwd: folder });
  });

  test('runs its example', async () => {
    const example = readFileSync(join(HERE, 'examples', 'check.mjs'), 'utf8');
    const output = await node('check.mjs', example, `u-${Date.now()}`, 'newsletter');
    expect(output).toEqual(['before: false never-asked', 'granted: true', 'withdrawn: false']);
  });

  test('renders a page of Express by what its visitor allows, as README and example show', async () => {
    const example = readFileSync(join(HERE, 'examples', 'page.mjs'), 'utf8');
    const page = blocks.find((block) => block.includes('consent.may('))?.trimEnd() ?? '';
    expect(example.replaceAll(/^ +/gm, '')).toContain(page);
    writeFileSync(join(folder, 'page.mjs'), example);
    linkExpress();
    const output = await node(
      'rendered.mjs',
      `import express from 'express';
      import { FakeConsent } from '@gpd/consent/fake';
      import { shopPage } from './page.mjs';
      let now = Date.now();
      const consent = new FakeConsent({ now: () => now });
      await consent.grant({ principalId: 'u-1', purposes: ['ads'] });
      const cookie = await consent.cookieFor('u-1');
      const app = express();
      app.get('/', shopPage(consent, (request) => request.get('x-user')));
      const server = app.listen(0, '127.0.0.1', async () => {
        const ask = async (headers) => {
          const response = await fetch('http://127.0.0.1:' + server.address().port + '/', { headers });
          const sets = response.headers.get('set-cookie')?.startsWith('gpd_consent=ey') ?? false;
          console.log((await response.text()).includes('Seen elsewhere'), sets);
        };
        await ask({});
        await ask({ cookie });
        await ask({ cookie, 'sec-gpc': '1' });
        await ask({ 'x-user': 'u-1' });
        await ask({ 'x-user': 'u-2', cookie });
        now += 3600_000;
        await ask({ cookie });
        server.close();
      });`,
    );
    expect(output).toEqual([
      'false false',
      'true false',
      'false false',
      'true false',
      'false false',
      'true true',
    ]);
  });

  test('guards a route of Express, as the example shows', async () => {
    cpSync(join(HERE, 'examples', 'express.mjs'), join(folder, 'express.mjs'));
    linkExpress();
    const output = await node(
      'guarded.mjs',
      `import express from 'express';
      import { FakeConsent } from '@gpd/consent/fake';
      import { requireConsent } from './express.mjs';
      const consent = new FakeConsent();
      const app = express();
      app.get('/offers', requireConsent(consent, 'newsletter', (request) => request.get('x-user')), (_, response) => {
        response.json({ offers: [] });
      });
      const server = app.listen(0, '127.0.0.1', async () => {
        const ask = async (headers) =>
          (await fetch('http://127.0.0.1:' + server.address().port + '/offers', { headers })).status;
        console.log(await ask({}));
        console.log(await ask({ 'x-user': 'u-1' }));
        await consent.grant({ principalId: 'u-1', purposes: ['newsletter'] });
        console.log(await ask({ 'x-user': 'u-1' }));
        consent.setUnavailable(true);
        console.log(await ask({ 'x-user': 'u-1' }));
        server.close();
      });`,
    );
    expect(output).toEqual(['401', '403', '200', '403']);
  });
});
