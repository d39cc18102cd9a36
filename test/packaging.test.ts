import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { tempDir } from './support/command.ts';

/** The shell scripts of the packages, as far as they run without building one. */

const PROJECT = fileURLToPath(new URL('..', import.meta.url));
const LAUNCHER = join(PROJECT, 'packaging/archive/gpd');

/** An archive whose program prints its arguments. */
function unpackedArchive(): string {
  const folder = tempDir('archive');
  for (const name of ['gpd/bin', 'gpd/lib/gpd/bin']) mkdirSync(join(folder, name), { recursive: true });
  copyFileSync(LAUNCHER, join(folder, 'gpd/bin/gpd'));
  symlinkSync(process.execPath, join(folder, 'gpd/bin/node'));
  writeFileSync(join(folder, 'gpd/lib/gpd/bin/gpd'), 'console.log(process.argv.slice(2).join())');
  symlinkSync(join(folder, 'gpd/bin/gpd'), join(folder, 'link'));
  symlinkSync(join(folder, 'gpd'), join(folder, 'current'));
  return folder;
}

it.each(['gpd/bin/gpd', 'current/bin/gpd', 'link'])('the archive runs by %s without a PATH', (path) => {
  const folder = unpackedArchive();
  for (const [file, cwd] of [
    [join(folder, path), '/'],
    [`./${path}`, folder],
  ] as const) {
    const { status, stdout, stderr } = spawnSync(file, ['status', '--json'], { cwd, env: { PATH: '' } });
    expect({ status, stdout: String(stdout), stderr: String(stderr) }).toEqual({
      status: 0,
      stdout: 'status,--json\n',
      stderr: '',
    });
  }
});

/** A PATH with these programs of the machine alone. */
function pathWith(...programs: readonly string[]): string {
  const folder = tempDir('path');
  for (const name of programs) {
    const found = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim();
    symlinkSync(found, join(folder, name));
  }
  return folder;
}

it.each([
  ['deb.sh', 'dpkg-deb dpkg-shlibdeps strip help2man', 'dpkg dpkg-dev binutils help2man'],
  ['archive.sh', 'strip', 'binutils'],
])('%s names the tools that are missing in one sentence', (script, tools, packages) => {
  const env = { PATH: pathWith('dirname', 'node', 'git', 'tar') };
  const { status, stdout, stderr } = spawnSync('/bin/sh', [join(PROJECT, 'packaging', script)], { env });
  expect({ status, stdout: String(stdout), stderr: String(stderr) }).toEqual({
    status: 1,
    stdout: '',
    stderr: `gpd: this package is built with ${tools}, which this machine lacks: apt-get install ${packages}\n`,
  });
});

it('a package of a clone that was not built names the step before it', () => {
  const clone = tempDir('clone');
  cpSync(join(PROJECT, 'packaging'), join(clone, 'packaging'), { recursive: true });
  const env = { PATH: pathWith('dirname', 'tar') };
  writeFileSync(join(env.PATH, 'strip'), '', { mode: 0o755 });
  const { status, stderr } = spawnSync('/bin/sh', [join(clone, 'packaging/archive.sh')], { env });
  expect({ status, stderr: String(stderr) }).toEqual({
    status: 1,
    stderr: 'gpd: dist/cli/main.js is missing: npm run build\n',
  });
});
