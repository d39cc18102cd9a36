import { type ChildProcess, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';
import {
  blocksOf,
  commandsOf,
  filesOf,
  type ShopServer,
  sectionOf,
  startShop,
} from '../browser/support/pasted.ts';
import { tempDir } from '../support/command.ts';

/** A shop of a page, as the page says: the packages as npm packs them, the others from npm's registry. */

export const ANALYTICS = ['consent', 'purposes', 'set', 'shop', 'analytics', '--title', 'Statistics'];

/** Runs a command, which must succeed. */
export function run(cwd: string, env: NodeJS.ProcessEnv, [program = '', ...words]: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(program, words, { cwd, env, encoding: 'utf8' });
  expect({ status, output: status === 0 ? '' : `${stdout}${stderr}` }).toEqual({ status: 0, output: '' });
}

/** Packs the packages of npm into a folder. */
export function packSdks(folder: string, names = ['browser', 'react', 'node']): void {
  for (const name of names) {
    const cwd = fileURLToPath(new URL(`../../sdk/${name}`, import.meta.url));
    run(cwd, process.env, ['npm', 'pack', '--silent', '--pack-destination', folder]);
  }
}

export interface BuiltShop {
  readonly folder: string;
  start(): Promise<ChildProcess>;
}

/** Writes the files of a page, or of a section, and runs its commands; the last starts the shop. */
export function buildShop(
  url: string,
  server: ShopServer,
  packs: string,
  page: string,
  section = '',
): BuiltShop {
  const folder = tempDir('shop');
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  server.write(folder, filesOf(page, section));
  const bin = join(folder, 'node_modules/.bin');
  // The tests' own settings of Node and npm are not those of somebody who follows the page.
  const { NODE_ENV: _mode, npm_config_engine_strict: _strict, ...environment } = server.environment;
  const env: NodeJS.ProcessEnv = { ...environment, PATH: `${bin}${delimiter}${process.env['PATH']}` };
  const commands = commandsOf(blocksOf(sectionOf(page, section), 'sh')[0] ?? '').map((words) =>
    words.filter((word) => word !== 'npx').map((word) => word.replace('./gpd-', `${packs}/gpd-`)),
  );
  const startCommand = commands.pop();
  const { GPD_CONSENT_KEY: _key, ...withoutKey } = env;
  for (const words of commands)
    run(folder, withoutKey, words[0] === 'npm' ? [...words, '--no-audit', '--no-fund'] : words);
  return { folder, start: () => startShop(url, folder, env, startCommand) };
}

export interface Visit {
  readonly page: Page;
  /** All that the console says. */
  readonly messages: readonly string[];
  /** The page as the server writes it for this visitor. */
  readonly rendered: () => Promise<string>;
}

export async function visitShop(browser: Browser, url: string): Promise<Visit> {
  const context = await browser.newContext();
  const page = await context.newPage();
  const messages: string[] = [];
  page.on('pageerror', (error) => messages.push(error.message));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) messages.push(message.text());
  });
  await page.goto(url);
  return { page, messages, rendered: async () => (await context.request.get(url)).text() };
}
