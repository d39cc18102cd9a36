import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { expect, vi } from 'vitest';
import { gpdJson, tempDir } from '../../support/command.ts';
import { freePort } from '../../support/ports.ts';
import { type Gpd, type SealTarget, startGpd } from '../../support/server.ts';

/** Puts the files and commands of the pages for integrators together as the pages say. */

const ROOT = new URL('../../../', import.meta.url);
export const readDocs = (page: string): string => readFileSync(new URL(`docs/${page}`, ROOT), 'utf8');

/** The blocks of one language, in their order. */
export const blocksOf = (text: string, language: string): string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, code = '']) => code,
  );

/** The lines of a block as arguments, quotes taken as a shell would. */
export function commandsOf(block: string): string[][] {
  const lines = block.replaceAll('\\\n', ' ').trim().split('\n');
  return lines.map((line) =>
    [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? ''),
  );
}

/** The SDK as a package of this folder: its own tests pack and install it. */
export async function installSdk(folder: string): Promise<void> {
  const target = join(folder, 'node_modules/@gpd/consent');
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, 'package.json'), '{ "type": "module", "exports": "./index.js" }');
  const entry = fileURLToPath(new URL('sdk/node/src/index.ts', ROOT));
  const out = { outfile: join(target, 'index.js'), bundle: true, platform: 'node', format: 'esm' } as const;
  await build({ entryPoints: [entry], ...out });
}

/** The files of a page or of one section: a paragraph begins with the name in bold, and the next block is its text. */
export const filesOf = (page: string, section = ''): Map<string, string> =>
  new Map(
    [...sectionOf(page, section).matchAll(/^\*\*`([\w./+-]+)`\*\*[\s\S]*?^```\w+\n([\s\S]*?)^```$/gm)].map(
      ([, name = '', code = '']) => [name, code],
    ),
  );

/** The text of a page up to the next heading; the whole page without a heading. */
export function sectionOf(page: string, heading: string): string {
  const text = readDocs(page);
  if (heading === '') return text;
  const found = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`));
  if (found === undefined) throw new Error(`${page} has no section ${heading}`);
  return found;
}

export interface ShopServer {
  readonly gpd: Gpd;
  /** The environment of the shop's process. */
  readonly environment: NodeJS.ProcessEnv;
  /** A file of a page, with the addresses and the key of this test. */
  local(code: string): string;
  /** Writes files of a page into a folder. */
  write(folder: string, files: ReadonlyMap<string, string>): void;
}

/** The gpd of docs/integrate.md, for a shop at this address. */
export async function startShopServer(url: string, ...commands: readonly string[][]): Promise<ShopServer> {
  const dataDir = join(tempDir('shop-gpd'), 'gpd-data');
  const keys: string[] = [];
  const setUp = commandsOf(blocksOf(readDocs('integrate.md'), 'sh')[0] ?? '');
  for (const words of [...setUp.map(([, ...rest]) => rest), ...commands]) {
    if (words[0] === 'serve') continue;
    const localWords = words.map((word) => word.replace('http://localhost:3000', url));
    const { key } = await gpdJson<{ key?: string }>(localWords, { env: { GPD_DATA_DIR: dataDir } });
    if (key !== undefined) keys.push(key);
  }
  const [publishable = '', secret = ''] = keys;
  const gpd = await startGpd({ dataDir, settings: { GPD_RATE_CONSENT_NEW: 'off' } });
  const address = `http://localhost:${gpd.port}`;
  const { port } = new URL(url);
  const local = (code: string): string =>
    code
      .replaceAll('http://localhost:8080', address)
      .replaceAll('gpd_pk_…', publishable)
      .replace('listen(3000', `listen(${port}`);
  return {
    gpd,
    environment: { ...process.env, PORT: port, GPD_CONSENT_URL: address, GPD_CONSENT_KEY: secret },
    local,
    write(folder, files) {
      for (const [name, code] of files) {
        mkdirSync(join(folder, name, '..'), { recursive: true });
        writeFileSync(join(folder, name), local(code));
      }
    },
  };
}

/** Starts a shop's own server and waits until it answers. */
export async function startShop(
  url: string,
  cwd: string,
  env: NodeJS.ProcessEnv,
  [program = '', ...words]: readonly string[] = [process.execPath, 'server.mjs'],
): Promise<ChildProcess> {
  const shop = spawn(program, words, { cwd, env, stdio: ['ignore', 'inherit', 'inherit'] });
  await vi.waitFor(async () => expect((await fetch(url)).status).toBe(200), { timeout: 60_000 });
  return shop;
}

export interface PastedShop {
  readonly gpd: Gpd;
  readonly target: SealTarget;
  readonly secret: string;
  readonly url: string;
  readonly folder: string;
  /** Runs a command of a page against this gpd. */
  command(words: readonly string[]): Promise<Record<string, unknown>>;
  start(environment?: Readonly<Record<string, string>>): Promise<void>;
  stop(): Promise<void>;
}

/** A gpd, and beside it the shop of docs/after-login.md, which is not started yet. */
export async function pasteShop(): Promise<PastedShop> {
  const dataDir = join(tempDir('pasted'), 'gpd-data');
  const url = `http://localhost:${await freePort()}`;
  const env = { GPD_DATA_DIR: dataDir };
  const command = (words: readonly string[]) =>
    gpdJson(
      words.slice(1).map((word) => word.replace('http://localhost:3000', url)),
      { env },
    );
  const [setUp = ''] = blocksOf(readDocs('integrate.md'), 'sh');
  const keys: string[] = [];
  let target: SealTarget | undefined;
  for (const words of [
    ...commandsOf(setUp),
    ...blocksOf(readDocs('after-login.md'), 'sh').flatMap(commandsOf),
  ]) {
    if (words[1] === 'serve') continue;
    const { key, publicKey } = await command(words);
    if (typeof key === 'string') keys.push(key);
    if (typeof publicKey === 'string') target = { kid: 'shop', publicKey: Buffer.from(publicKey, 'base64') };
  }
  const [publishable = '', secret = ''] = keys;
  const gpd = await startGpd({ dataDir, settings: { GPD_RATE_CONSENT_NEW: 'off' } });
  const gpdUrl = `http://localhost:${gpd.port}`;
  const folder = tempDir('shop');
  await installSdk(folder);
  symlinkSync(fileURLToPath(new URL('node_modules/express', ROOT)), join(folder, 'node_modules/express'));
  let shop: ChildProcess | undefined;
  if (target === undefined) throw new Error('the set-up makes no tenant');
  return {
    gpd,
    target,
    secret,
    url,
    folder,
    command,
    async start(environment = {}) {
      for (const [name, code] of filesOf('after-login.md')) writeIfMissing(join(folder, name), code);
      const page = join(folder, 'index.html');
      const html = readFileSync(page, 'utf8').replaceAll('http://localhost:8080', gpdUrl);
      writeFileSync(page, html.replace('gpd_pk_…', publishable));
      const server = join(folder, 'server.mjs');
      writeFileSync(
        server,
        readFileSync(server, 'utf8').replace('listen(3000', `listen(${new URL(url).port}`),
      );
      const gpdOf = { GPD_CONSENT_URL: gpdUrl, GPD_CONSENT_KEY: secret };
      shop = await startShop(url, folder, { ...process.env, ...gpdOf, ...environment });
    },
    async stop() {
      shop?.kill();
      await gpd.stop();
    },
  };
}

function writeIfMissing(file: string, code: string): void {
  try {
    writeFileSync(file, code, { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
