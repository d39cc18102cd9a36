import { chmodSync, chownSync, readdirSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cacheFolder, missingTools, readCache, toolProblem, writeCache } from '../bin/native.mjs';
import { tempDir } from './support/command.ts';

describe('the tool chain', () => {
  const machine =
    (...names: string[]) =>
    (name: string): boolean =>
      names.includes(name);

  it('is complete with any of the usual names', () => {
    expect(missingTools(machine('c++', 'make', 'python3'))).toEqual([]);
    expect(missingTools(machine('clang++', 'gmake', 'python'))).toEqual([]);
  });

  it('names what is missing', () => {
    expect(missingTools(machine('python3'))).toEqual(['a C++ compiler', 'make']);
    expect(missingTools(machine('g++', 'make'))).toEqual(['Python 3']);
  });

  it('is asked for in the words of the platform', () => {
    expect(toolProblem([], 'linux')).toBeNull();
    expect(toolProblem(['make'], 'linux')).toContain('lacks make: `apt-get install build-essential python3`');
    expect(toolProblem(['make'], 'darwin')).toContain('`xcode-select --install`');
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

  it('is where the user keeps such things', () => {
    expect(cacheFolder({ XDG_CACHE_HOME: '/srv/cache' })).toBe('/srv/cache/gpd');
    expect(cacheFolder({})).toMatch(/\/\.cache\/gpd$/);
  });

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
