import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { addApiKey } from '../support/api-key.ts';
import { spawnTool, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import { describeWithTool } from '../support/tools.ts';

/** Clients that openapi-generator makes of docs/openapi.json compile, and their answers are those of a running gpd. */

const VERSION = '7.25.0';
const folder = tempDir('generators');
const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));

async function run(cwd: string, file: string, ...words: readonly string[]): Promise<string> {
  const { exited, output } = spawnTool(file, words, { cwd, env: { GOFLAGS: '-mod=mod' } });
  const { code } = await exited;
  if (code !== 0)
    throw new Error(`${file} ${code}: ${output.stdout.slice(-2000)} ${output.stderr.slice(-2000)}`);
  return output.stdout;
}

/** @returns why the generator cannot be had, or null */
async function installGenerator(): Promise<string | null> {
  const artifact = `org.openapitools:openapi-generator-cli:${VERSION}`;
  try {
    await run(
      folder,
      'mvn',
      '-q',
      'dependency:copy',
      `-Dartifact=${artifact}`,
      `-DoutputDirectory=${folder}`,
    );
    for (const [tool, word] of [
      ['go', 'version'],
      ['python3', '--version'],
      ['javac', '-version'],
    ] as const)
      await run(folder, tool, word);
    return null;
  } catch (error) {
    return `Go, Python, Maven and access to its registry are needed: ${(error as Error).message.slice(0, 200)}`;
  }
}

/** Generates a client with the options of docs/sdk.md. @returns its folder */
async function generate(language: string, ...options: readonly string[]): Promise<string> {
  const output = join(folder, language);
  const words = ['generate', '-i', path('docs/openapi.json'), '-g', language, '-o', output, ...options];
  const only = ['--global-property', 'apis,models,supportingFiles'];
  await run(folder, 'java', '-jar', `openapi-generator-cli-${VERSION}.jar`, ...words, ...only);
  return output;
}

const program = (name: string): string => path(`test/package/generators/${name}`);
const CLIENTS = {
  async go(...words: readonly string[]) {
    const client = await generate('go', '--additional-properties=enumClassPrefix=true');
    mkdirSync(join(client, 'cmd'));
    copyFileSync(program('main.go'), join(client, 'cmd/main.go'));
    return run(client, 'go', 'run', './cmd', ...words);
  },
  async python(...words: readonly string[]) {
    const client = await generate('python');
    await run(client, 'python3', '-m', 'venv', 'venv');
    await run(client, 'venv/bin/pip', 'install', '--quiet', '.');
    return run(client, 'venv/bin/python', program('main.py'), ...words);
  },
  async java(...words: readonly string[]) {
    const client = await generate('java');
    await run(
      client,
      'mvn',
      '-q',
      '-Dmaven.test.skip',
      '-Dmaven.javadoc.skip',
      'package',
      'dependency:copy-dependencies',
    );
    return run(client, 'java', '-cp', 'target/*:target/dependency/*', program('Main.java'), ...words);
  },
};

describeWithTool('openapi-generator', await installGenerator(), () => {
  const gpd = started(startGpd);

  it.each(Object.keys(CLIENTS) as (keyof typeof CLIENTS)[])(
    'makes a client in %s that asks, grants, withdraws and reads a refusal',
    async (language) => {
      await gpd.cli(['consent', 'purposes', 'set', KID, 'newsletter', '--title', 'Newsletter']);
      const output = await CLIENTS[language](gpd.url, await addApiKey(gpd));
      expect(JSON.parse(output)).toEqual([false, true, true, false, 422, 'unknown-purpose']);
    },
  );
});
