import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { signWebhook } from '../../sdk/node/src/webhook.ts';
import { filesOf } from '../browser/support/pasted.ts';
import { cleanEnvironment, gpdJson, type Spawned, spawnTool, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { freePort } from '../support/ports.ts';
import { startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import { describeWithTool } from '../support/tools.ts';
import { packSdks, run } from './shop.ts';

/** The recipes of docs/webhooks.md, pasted: each framework from its registry receives what gpd delivers, and what others send. */

const sdk = (name: string): string => fileURLToPath(new URL(`../../sdk/${name}`, import.meta.url));
const recipes = filesOf('webhooks.md');
const has = (...[program = '', ...words]: string[]): boolean => spawnSync(program, words).status === 0;

interface Framework {
  /** The recipe, its place in the project, and the line that the place asks for. */
  readonly recipe: string;
  readonly place?: string;
  readonly head?: string;
  readonly missing: string | null;
  /** Files of the project that the recipe does not show. */
  readonly files?: Readonly<Record<string, string>>;
  /** The folder gets the SDK as users get it, and the framework. */
  readonly install: readonly string[][];
  readonly start: (port: string) => readonly string[];
}

const npm = (name: string, version: string): Framework => ({
  recipe: `${name}.mjs`,
  missing: null,
  files: { 'package.json': '{ "private": true }' },
  install: [['npm', 'install', '--no-audit', '--no-fund', './gpd-consent-0.1.0.tgz', `${name}@${version}`]],
  start: () => [process.execPath, `${name}.mjs`],
});

const VENV = has('python3', '-c', 'import ensurepip, venv') ? null : 'python3 has no venv (python3-venv)';
const pip = (...packages: readonly string[]): string[][] => [
  ['python3', '-m', 'venv', 'venv'],
  ['venv/bin/pip', 'install', '--quiet', sdk('python'), ...packages],
];

/** Two modules: the SDK, as its folder is, and a shop that depends on it. */
const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>shop</groupId><artifactId>all</artifactId><version>1</version><packaging>pom</packaging>
  <modules><module>consent</module><module>shop</module></modules>
</project>`;
const SHOP_POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <parent>
    <groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-parent</artifactId>
    <version>4.0.9</version><relativePath/>
  </parent>
  <groupId>shop</groupId><artifactId>shop</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-webmvc</artifactId></dependency>
    <dependency><groupId>dev.gpd</groupId><artifactId>consent</artifactId><version>0.1.0</version></dependency>
  </dependencies>
  <build>
    <finalName>shop</finalName>
    <plugins><plugin>
      <groupId>org.springframework.boot</groupId><artifactId>spring-boot-maven-plugin</artifactId>
    </plugin></plugins>
  </build>
</project>`;
const SHOP = `package shop;
@org.springframework.boot.autoconfigure.SpringBootApplication
public class Shop {
  public static void main(String[] args) {
    org.springframework.boot.SpringApplication.run(Shop.class, args);
  }
}`;

const FRAMEWORKS: Readonly<Record<string, Framework>> = {
  Express: npm('express', '5.3.0'),
  Fastify: npm('fastify', '5.12.8'),
  FastAPI: {
    recipe: 'fastapi_hooks.py',
    missing: VENV,
    install: pip('fastapi', 'uvicorn'),
    start: (port) => ['venv/bin/uvicorn', 'fastapi_hooks:app', '--port', port],
  },
  Django: {
    recipe: 'urls.py',
    missing: VENV,
    install: [
      ...pip('django'),
      ['venv/bin/django-admin', 'startproject', 'shop', '.'],
      ['mv', 'urls.py', 'shop/urls.py'],
    ],
    start: (port) => ['venv/bin/python', 'manage.py', 'runserver', '--noreload', port],
  },
  Spring: {
    recipe: 'Hooks.java',
    place: 'shop/src/main/java/shop/Hooks.java',
    head: 'package shop;\n',
    missing: has('mvn', '--version') ? null : 'Maven is missing (apt-get install default-jdk-headless maven)',
    files: { 'pom.xml': POM, 'shop/pom.xml': SHOP_POM, 'shop/src/main/java/shop/Shop.java': SHOP },
    install: [
      ['cp', '-r', sdk('java'), 'consent'],
      ['mvn', '--quiet', '--batch-mode', '-Dmaven.test.skip=true', 'package'],
    ],
    start: (port) => ['java', '-jar', 'shop/target/shop.jar', `--server.port=${port}`],
  },
};

function build({ recipe, place = recipe, head = '', files = {}, install }: Framework, port: string): string {
  const folder = tempDir('hooks');
  const code = head + (recipes.get(recipe) ?? '').replaceAll('3000', port);
  for (const [name, text] of Object.entries({ ...files, [place]: code })) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  if (recipe.endsWith('.mjs')) packSdks(folder, ['node']);
  // The tests' settings of npm are not those of somebody who follows the page.
  const { NODE_ENV: _mode, npm_config_engine_strict: _strict, ...env } = cleanEnvironment();
  for (const words of install) run(folder, env, words);
  return folder;
}

/** No JSON writer of the five writes such spaces and such an escape. */
const BODY = String.raw`{ "type":"a", "timestamp":"2026-11-23T03:00:00.000Z", "seq":42, "data":{"name":"K\u00e4the"} }`;

for (const [name, framework] of Object.entries(FRAMEWORKS)) {
  describeWithTool(`package/webhook-recipes ${name}`, framework.missing, () => {
    const gpd = started(() => startGpd());
    const command = (...words: string[]) =>
      gpdJson<{ secret: string }>(words, { env: { GPD_DATA_DIR: gpd.dataDir } });
    let url: string;
    let secret: string;
    let receiver: Spawned;

    // Maven and pip fetch a framework in a minute on a busy machine.
    beforeAll(async () => {
      const port = `${await freePort()}`;
      url = `http://127.0.0.1:${port}/hooks`;
      ({ secret } = await command('webhooks', 'add', KID, url, '--allow-private'));
      const cwd = build(framework, port);
      const env = { WEBHOOK_SECRET: secret, PYTHONUNBUFFERED: '1' };
      const [program = '', ...words] = framework.start(port);
      receiver = spawnTool(program.replace(/^venv/, join(cwd, 'venv')), words, { cwd, env });
      await vi.waitFor(() => fetch(url));
    }, 600_000);
    afterAll(async () => {
      receiver?.child.kill();
      await receiver?.exited;
    });

    async function send(body: string, headers: Readonly<Record<string, string>>): Promise<number> {
      const type = { 'content-type': 'application/json' };
      return (await fetch(url, { method: 'POST', body, headers: { ...type, ...headers } })).status;
    }

    it('takes what gpd delivers', async () => {
      await command('consent', 'grant', KID, 'anna', 'device-identification');
      await expect.poll(() => receiver.output.stdout).toContain('consent.granted');
      await expect.poll(() => command('webhooks', 'list', KID)).toMatchObject([{ outbox: { delivered: 1 } }]);
    });

    it('takes the bytes as they came', async () => {
      expect(
        await send(BODY, signWebhook(BODY, { secret, id: 'evt_raw' })),
        receiver.output.stderr,
      ).toBeLessThan(300);
      expect(receiver.output.stdout).toContain('evt_raw');
    });

    it.each([
      ['a changed byte', BODY.replace('42', '43'), {}],
      ['what a JSON parser wrote again', JSON.stringify(JSON.parse(BODY)), {}],
      ['an old time', BODY, { now: Math.floor(Date.now() / 1000) - 3600 }],
      ['the signature of another target', BODY, { secret: `whsec_${Buffer.alloc(32).toString('base64')}` }],
    ])('refuses %s', async (_what, body, options) => {
      const headers = signWebhook(BODY, { secret, id: 'evt_refused', ...options });
      expect(await send(body, headers)).toBe(400);
      expect(await send(body, {})).toBe(400);
      expect(receiver.output.stdout).not.toContain('evt_refused');
    });
  });
}
