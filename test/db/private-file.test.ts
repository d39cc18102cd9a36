import {
  linkSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { replaceFile, writePrivate } from '../../src/db/own-files.ts';
import { parseMasterKey } from '../../src/keys/master-key.ts';
import { readMasterKeyFile, writeMasterKeyFile } from '../../src/tenants/master-key-files.ts';
import { tempDir } from '../support/command.ts';

/** Secrets in a directory that others may write to. */

const KEY = Buffer.alloc(32, 7);

/** Somebody who guessed the name has put a file there first. */
function plant(path: string): string {
  const planted = `${path}.${process.pid}.tmp`;
  writeFileSync(planted, '', { mode: 0o666 });
  return planted;
}

// Guards against: a file that was there under the guessed name was filled with the key, and kept its owner and mode.
it.each([
  ['writeMasterKeyFile', (path: string) => writeMasterKeyFile(path, KEY)],
  ['replaceFile', (path: string) => replaceFile(path, 'secret')],
])('%s writes into no file that was there before', (_name, write) => {
  const path = join(tempDir('private'), 'key');
  const planted = plant(path);
  write(path);
  expect(readFileSync(planted, 'utf8')).toBe('');
  expect(statSync(path).ino).not.toBe(statSync(planted).ino);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(path).uid).toBe(process.geteuid?.());
});

it('makes a file of mode 0600 under any umask, and leaves nothing else', () => {
  const directory = tempDir('private');
  const path = join(directory, 'key');
  const before = process.umask(0o277);
  try {
    writeMasterKeyFile(path, KEY);
  } finally {
    process.umask(before);
  }
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readMasterKeyFile(path)).toEqual(parseMasterKey(KEY));
  expect(readdirSync(directory)).toEqual(['key']);
});

it('never takes the place of a file that is there, a link included', () => {
  const directory = tempDir('private');
  const path = join(directory, 'key');
  symlinkSync(join(directory, 'nowhere'), path);
  expect(() => writeMasterKeyFile(path, KEY)).toThrow(/is a symbolic link/);
  expect(readdirSync(directory)).toEqual(['key']);
});

it('tells when somebody put another file in its place', () => {
  const directory = tempDir('private');
  const path = join(directory, 'key');
  const swap = (temporary: string): void => {
    renameSync(temporary, `${temporary}-stolen`);
    writeFileSync(temporary, 'mine');
    linkSync(temporary, path);
  };
  expect(() => writePrivate(path, 'secret', swap)).toThrow(/is not the file that gpd wrote/);
  expect(lstatSync(path).isFile()).toBe(true);
});
