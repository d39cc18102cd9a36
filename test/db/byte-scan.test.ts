import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { idsInFile } from '../../src/db/byte-scan.ts';
import { openDatabase } from '../../src/db/engine.ts';
import { tempDir } from '../support/command.ts';

const looksFor = (otherNeedles: readonly string[], requests: readonly string[] = []) => ({
  requests: new Set(requests),
  others: new Set(otherNeedles),
});
const NOWHERE = looksFor(['nowhere']);
const SLICE = 256 * 1024;

const LOCKS = '/proc/locks';

/** The kernel's list may name a lock twice when other locks change while it is read. */
function locksOn(file: string): number {
  const { ino } = statSync(file);
  const lines = readFileSync(LOCKS, 'utf8').split('\n');
  const found = lines.filter((line) => line.includes(`:${ino} `)).map((line) => line.replace(/^\d+: /, ''));
  return new Set(found).size;
}

describe.skipIf(!existsSync(LOCKS))('a look for bytes in a database that is open', () => {
  // A `sqlite3` shell of SQLite 3.40 takes itself for the last one otherwise, and removes the log when it closes.
  it('leaves its locks where they are', async () => {
    const file = join(tempDir('scan'), 'gpd.db');
    const database = await openDatabase({ location: file, create: true });
    await database.transaction((tx) => tx.raw('CREATE TABLE kept (id text)'));
    expect(locksOn(file)).toBe(1);
    for (let i = 0; i < 2; i += 1) expect([...(await idsInFile(file, NOWHERE))]).toEqual([]);
    expect(locksOn(file)).toBe(1);
    await database.close();
    expect(locksOn(file)).toBe(0);
  });
});

describe('idsInFile', () => {
  const directory = tempDir('scan');
  const holding = (name: string, content: string): string => {
    const file = join(directory, name);
    writeFileSync(file, content);
    return file;
  };
  const found = async (...args: Parameters<typeof idsInFile>) => [...(await idsInFile(...args))].sort();

  it('finds what lies across two slices, and reads the file again each time', async () => {
    const needles = looksFor(['a-durable-id', 'another-id']);
    const file = holding('long', `${'x'.repeat(SLICE - 5)}a-durable-id${'x'.repeat(SLICE)}`);
    expect(await found(file, needles)).toEqual(['a-durable-id']);
    writeFileSync(file, 'x'.repeat(SLICE));
    expect(await found(file, needles)).toEqual([]);
  });

  it('finds each of many, wherever they lie', async () => {
    const ids = Array.from({ length: 40 }, (_, i) => `${i}`.padStart(22, 'id'));
    const [first = '', across = '', last = ''] = [ids[3], ids[17], ids[39]];
    const text = `${first}${'x'.repeat(SLICE - first.length - 9)}${across}${'y'.repeat(700)}${last}`;
    expect(await found(holding('many', text), looksFor(ids))).toEqual([first, across, last].sort());
    const cut = `${first.slice(1)}${last.slice(0, -1)}`;
    expect(await found(holding('cut', cut), looksFor(ids))).toEqual([]);
  });

  it('tells one request from another by its whole id', async () => {
    const [erasedId, other] = [`req_${'A'.repeat(26)}`, `req_${'B'.repeat(26)}`];
    const needles = looksFor([], [erasedId]);
    expect(await found(holding('other', `..${other}..`), needles)).toEqual([]);
    expect(await found(holding('both', `..${other}..${erasedId}`), needles)).toEqual([erasedId]);
  });

  it('a file that is not there holds nothing', async () => {
    expect(await found(join(directory, 'none'), NOWHERE)).toEqual([]);
  });
});
