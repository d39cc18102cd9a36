import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { cacheKey, findHeaders, missingTools, readCache, toolProblem, writeCache } from '../bin/native.mjs';
import { tempDir } from './support/command.ts';

it('names what is missing of the tool chain, in the words of the platform', () => {
  const missing = (...there: string[]) => missingTools((name: string) => there.includes(name));
  expect(missing('clang++', 'gmake', 'python')).toEqual([]);
  expect(missing('python3')).toEqual(['a C++ compiler', 'make']);
  expect(missing('g++', 'make')).toEqual(['Python 3']);
  expect(toolProblem([], 'linux')).toBeNull();
  expect(toolProblem(['make'], 'linux')).toContain('lacks make: `apt-get install build-essential python3`');
  expect(toolProblem(['make'], 'darwin')).toContain('`xcode-select --install`');
});

const PROJECT = fileURLToPath(new URL('..', import.meta.url));

/** A clone whose module is not compiled, without headers to compile it. */
function cloneProject() {
  const clone = tempDir('clone');
  const sqlite = join(clone, 'node_modules/sqlite3');
  for (const name of ['package.json', 'binding.gyp', 'src', 'deps'])
    cpSync(join(PROJECT, 'node_modules/sqlite3', name), join(sqlite, name), { recursive: true });
  for (const name of ['node-gyp', 'tar'])
    symlinkSync(join(PROJECT, 'node_modules', name), join(clone, 'node_modules', name));
  cpSync(join(PROJECT, 'bin/native.mjs'), join(clone, 'bin/native.mjs'));
  const env = {
    ...process.env,
    XDG_CACHE_HOME: join(clone, 'cache'),
    npm_config_devdir: join(clone, 'cache/node-gyp'),
    npm_config_disturl: 'http://nowhere.invalid/',
    // Empty: the headers of this machine's Node are not taken either.
    npm_config_nodedir: '',
  };
  const run = (...options: string[]) =>
    spawnSync(process.execPath, ['bin/native.mjs', ...options], { cwd: clone, env, encoding: 'utf8' });
  return { clone, sqlite, run };
}

it('a quick module serves the demo and the tests; packaging compiles it again', () => {
  const { clone, sqlite, run } = cloneProject();
  const release = join(sqlite, 'build/Release');
  cpSync(
    join(PROJECT, 'node_modules/sqlite3/build/Release/node_sqlite3.node'),
    join(release, 'node_sqlite3.node'),
  );
  writeFileSync(join(release, 'quick'), '');
  spawnSync('tar', ['-czf', 'module.tar.gz', 'build'], { cwd: sqlite });
  const bytes = readFileSync(join(sqlite, 'module.tar.gz'));
  for (const name of ['module.tar.gz', 'build']) rmSync(join(sqlite, name), { recursive: true });
  writeCache(join(clone, 'cache/gpd'), `${cacheKey(sqlite)}-quick`, bytes);
  const first = run('--quick');
  expect({ status: first.status, stderr: first.stderr }).toEqual({
    status: 0,
    stderr: expect.stringContaining('taken from the cache') as string,
  });
  expect(run('--quick')).toMatchObject({ status: 0, stderr: '' });
  const packaged = run();
  expect({ status: packaged.status, stderr: packaged.stderr }).toEqual({
    status: 1,
    stderr: expect.stringContaining('compiling') as string,
  });
});

describe("Node's headers", () => {
  function headersOf(version: string): string {
    const prefix = tempDir('node');
    const [major, minor, patch] = version.split('.');
    const lines = [`MAJOR_VERSION ${major}`, `MINOR_VERSION ${minor}`, `PATCH_VERSION ${patch}`];
    for (const folder of ['bin', 'include/node']) mkdirSync(join(prefix, folder), { recursive: true });
    writeFileSync(
      join(prefix, 'include/node/node_version.h'),
      lines.map((line) => `#define NODE_${line}\n`).join(''),
    );
    writeFileSync(join(prefix, 'bin/node'), '');
    return prefix;
  }

  it('are those of the same installation, if they have its version', () => {
    const prefix = headersOf(process.versions.node);
    expect(findHeaders(join(prefix, 'bin/node'))).toBe(prefix);
    expect(findHeaders(join(headersOf('18.0.0'), 'bin/node'))).toBeNull();
    expect(findHeaders(join(tempDir('node'), '..', 'none', 'bin/node'))).toBeNull();
  });

  it('that cannot be fetched are one sentence with what to do', () => {
    const { status, stderr } = cloneProject().run();
    const lines = stderr.trim().split('\n');
    expect({ status, lines }).toEqual({
      status: 1,
      lines: [
        expect.stringContaining('compiling'),
        expect.stringMatching(/headers come from https:\/\/nodejs\.org, unless npm_config_nodedir/),
        expect.stringMatching(
          /could not be fetched from https:\/\/nodejs\.org: .* npm_config_nodedir=FOLDER/,
        ),
      ],
    });
  });
});

describe('the cache of compiled modules', () => {
  const bytes = Buffer.from('a module');

  function prepareCache(): { readonly cache: string; readonly path: string } {
    const cache = join(tempDir('cache'), 'gpd');
    writeCache(cache, 'sqlite3-1', bytes);
    const [name = ''] = readdirSync(cache);
    return { cache, path: join(cache, name) };
  }

  it('returns what was stored, for that key alone, and only its owner can read it', () => {
    const { cache, path } = prepareCache();
    expect(readCache(cache, 'sqlite3-1')).toEqual(bytes);
    expect(readCache(cache, 'sqlite3-2')).toBeNull();
    expect(readCache(join(cache, 'none'), 'sqlite3-1')).toBeNull();
    expect([statSync(cache).mode & 0o777, statSync(path).mode & 0o777]).toEqual([0o700, 0o600]);
  });

  it.each<readonly [string, (at: { cache: string; path: string }) => void]>([
    ['has other bytes than its name says', ({ path }) => writeFileSync(path, 'another')],
    ['others can write', ({ path }) => chmodSync(path, 0o666)],
    ['is in a folder that others can write', ({ cache }) => chmodSync(cache, 0o777)],
    [
      'is a link',
      ({ cache, path }) => {
        renameSync(path, join(cache, 'elsewhere'));
        symlinkSync(join(cache, 'elsewhere'), path);
      },
    ],
  ])('passes over a file that %s', (_what, change) => {
    const at = prepareCache();
    change(at);
    expect(readCache(at.cache, 'sqlite3-1')).toBeNull();
  });

  it.runIf(process.getuid?.() === 0)('passes over the file of another user', () => {
    const { cache, path } = prepareCache();
    chownSync(path, 65_534, 65_534);
    expect(readCache(cache, 'sqlite3-1')).toBeNull();
  });

  it('that cannot be written stops nobody', () => {
    const file = join(tempDir('cache'), 'file');
    writeFileSync(file, '');
    expect(() => writeCache(join(file, 'gpd'), 'sqlite3-1', bytes)).not.toThrow();
  });
});
