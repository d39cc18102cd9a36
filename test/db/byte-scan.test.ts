import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fileHolds } from '../../src/db/byte-scan.ts';
import { openDatabase } from '../../src/db/db.ts';
import { tempDir } from '../support/command.ts';

const NOTHING = { requests: new Set<string>(), others: ['nowhere'] };
const CHUNK = 1 << 20;

const LOCKS = '/proc/locks';

/** What the kernel knows of locks on this file. */
function locksOn(file: string): number {
  const { ino } = statSync(file);
  return readFileSync(LOCKS, 'utf8')
    .split('\n')
    .filter((line) => line.includes(`:${ino} `)).length;
}

describe.skipIf(!existsSync(LOCKS))('a look for bytes in a database that is open', () => {
  // A `sqlite3` shell of SQLite 3.40 takes itself for the last one otherwise, and removes the log when it closes.
  it('leaves its locks where they are', async () => {
    const file = join(tempDir('scan'), 'gpd.db');
    const database = await openDatabase({ location: file, create: true });
    await database.transaction((tx) => tx.raw('CREATE TABLE kept (id text)'));
    expect(locksOn(file)).toBe(1);
    expect(await fileHolds(file, NOTHING)).toBe(false);
    expect(await fileHolds(file, NOTHING)).toBe(false);
    expect(locksOn(file)).toBe(1);
    await database.close();
    expect(locksOn(file)).toBe(0);
  });
});

describe('fileHolds', () => {
  const directory = tempDir('scan');
  const holding = (name: string, content: string): string => {
    const file = join(directory, name);
    writeFileSync(file, content);
    return file;
  };

  it('finds what lies across two pieces, and reads the file anew each time', async () => {
    const needles = { requests: new Set<string>(), others: ['a-durable-id'] };
    const file = holding('long', `${'x'.repeat(CHUNK - 5)}a-durable-id${'x'.repeat(CHUNK)}`);
    expect(await fileHolds(file, needles)).toBe(true);
    writeFileSync(file, 'x'.repeat(CHUNK));
    expect(await fileHolds(file, needles)).toBe(false);
  });

  it('tells one request from another by its whole id', async () => {
    const [wanted, other] = [`req_${'A'.repeat(26)}`, `req_${'B'.repeat(26)}`];
    const needles = { requests: new Set([wanted]), others: [] };
    expect(await fileHolds(holding('other', `..${other}..`), needles)).toBe(false);
    expect(await fileHolds(holding('both', `..${other}..${wanted}`), needles)).toBe(true);
  });

  it('a file that is not there holds nothing', async () => {
    expect(await fileHolds(join(directory, 'none'), NOTHING)).toBe(false);
  });
});
