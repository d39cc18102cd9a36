import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runProgram, tempDir } from '../../support/command.ts';

/** Most of a short command's time is spent on loading modules. */

/** Runs a command. @returns the packages that it loaded by `require`, as knex and its 250 parts of lodash are */
async function packagesOf(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const folder = tempDir('loading');
  const [report, result] = [join(folder, 'report.cjs'), join(folder, 'packages')];
  writeFileSync(
    report,
    `process.once('exit', () => require('node:fs').writeFileSync(${JSON.stringify(result)}, Object.keys(require.cache).join('\\n')));`,
  );
  const { code } = await runProgram(args, { env: { ...env, NODE_OPTIONS: `--require=${report}` } });
  const paths = readFileSync(result, 'utf8').split('\n');
  const names = paths.flatMap((path) => /.*\/node_modules\/([^/]+)/.exec(path)?.[1] ?? []);
  return { code, packages: new Set(names) };
}

it('a command that opens no database loads neither driver nor builder', async () => {
  for (const args of [
    ['keys', 'list', '--help'],
    ['serve', '--help'],
    ['tenants', 'set', '--nonsense'],
  ]) {
    const { packages } = await packagesOf(args);
    for (const name of ['knex', 'lodash', 'sqlite3', 'pg'])
      expect(packages, args.join(' ')).not.toContain(name);
  }
  const { code, packages } = await packagesOf(
    ['init', '--tenant', 'shop', '--origin', 'https://shop.example'],
    {
      GPD_DATA_DIR: join(tempDir('data'), 'gpd'),
    },
  );
  expect(code).toBe(0);
  expect([...packages]).toEqual(expect.arrayContaining(['knex', 'lodash', 'sqlite3']));
});
