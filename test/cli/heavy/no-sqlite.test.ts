import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { createTree } from '../../../packaging/tree.mjs';
import { type Ran, runProgram, tempDir } from '../../support/command.ts';
import { initGpd } from '../../support/server.ts';

/** Messages of an installation without SQLite's native module, as after `npm install --ignore-scripts`. */

const NATIVE = 'node_modules/sqlite3/build/Release/node_sqlite3.node';

/** A copy of the program in the layout of `npm install --global`, with a separate node_modules. */
const root = join(tempDir('global'), 'lib', 'node_modules', 'gpd');
const program = join(root, 'bin', 'gpd');
const source = new URL('../../../bin/native.mjs', import.meta.url);

beforeAll(() => {
  createTree(root);
  rmSync(join(root, NATIVE));
  copyFileSync(source, join(root, 'bin/native.mjs'));
});

const run = (args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ran> =>
  runProgram(args, { env, program });

function expectRemedy(ran: Ran): void {
  expect(ran).toMatchObject({ code: 78, signal: null, stdout: '' });
  expect(ran.stderr.trim().split('\n')).toHaveLength(1);
  expect(ran.stderr).toContain(`node ${root}/bin/native.mjs`);
  expect(ran.stderr).not.toMatch(/knex|install sqlite3/i);
}

describe.concurrent('without the native module of SQLite', () => {
  it('gpd demo ends with the remedy, and leaves nothing', async () => {
    const directory = tempDir('demo');
    expectRemedy(await run(['demo', '--port', '0'], { TMPDIR: directory }));
    expect(readdirSync(directory)).toEqual([]);
  });

  it('gpd init ends with the remedy, and makes nothing', async () => {
    const dataDir = join(tempDir('data'), 'gpd-data');
    expectRemedy(await run(['init', '--tenant', 'shop'], { GPD_DATA_DIR: dataDir }));
    expect(existsSync(dataDir)).toBe(false);
  });

  it.each([[['serve', '--port', '0']], [['tenants', 'list']], [['doctor']], [['migrate']]])(
    'gpd %j ends with the remedy where there are data',
    async (args) => {
      const { dataDir } = await initGpd();
      const before = readdirSync(dataDir);
      expectRemedy(await run(args, { GPD_DATA_DIR: dataDir }));
      expect(readdirSync(dataDir)).toEqual(before);
    },
  );
});

describe('a native module that this machine cannot load', () => {
  it('is named, and a package that cannot compile one is to be installed again', async () => {
    mkdirSync(join(root, NATIVE, '..'), { recursive: true });
    writeFileSync(join(root, NATIVE), 'not for this machine');
    rmSync(join(root, 'bin/native.mjs'));
    const ran = await run(['init', '--tenant', 'shop'], { GPD_DATA_DIR: join(tempDir('data'), 'gpd-data') });
    expect(ran).toMatchObject({ code: 78, stdout: '' });
    expect(ran.stderr).toMatch(/node_sqlite3\.node.*install gpd again/);
  });
});
