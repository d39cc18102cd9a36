import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import {
  appendLine,
  BrokenLog,
  dropLines,
  type LineLog,
  readFrom,
  readLines,
} from '../../src/db/line-log.ts';
import { tempDir } from '../support/command.ts';

const newLog = (over: Partial<LineLog> = {}): LineLog => ({
  path: join(tempDir('lines'), 'a.log'),
  key: Buffer.alloc(32, 7),
  name: 'test',
  ...over,
});

const textsOf = ({ path }: LineLog): string[] => readFileSync(path, 'utf8').split('\n').slice(0, -1);
const put = ({ path }: LineLog, lines: readonly string[]): void =>
  writeFileSync(path, lines.map((line) => `${line}\n`).join(''));
const lineOf = (i: number) => ({ at: `2026-01-${String(i).padStart(2, '0')}`, i, text: `zeile ${i} ü` });
const append = (log: LineLog, i: number, atLeast = 0): Promise<number | null> =>
  appendLine(log, () => Promise.resolve(lineOf(i)), atLeast);

async function withLines(count: number): Promise<LineLog> {
  const log = newLog();
  for (let i = 1; i <= count; i += 1) expect(await append(log, i)).toBe(i);
  return log;
}

async function read(log: LineLog) {
  const lines = [];
  for await (const line of readLines(log)) lines.push(line);
  return lines;
}
const numbers = async (log: LineLog): Promise<number[]> => (await read(log)).map(({ number }) => number);
const problems = async (log: LineLog): Promise<string[]> =>
  (await read(log)).flatMap(({ problem }) => problem ?? []);

it('gives back what was appended, with its number, by many at once', async () => {
  const log = newLog();
  expect(await read(log)).toEqual([]);
  await Promise.all(Array.from({ length: 20 }, (_, i) => append(log, i + 1)));
  const lines = await read(log);
  expect(lines.map(({ number }) => number)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  expect(new Set(lines.map(({ body }) => body))).toEqual(
    new Set(Array.from({ length: 20 }, (_, i) => JSON.stringify(lineOf(i + 1)))),
  );
  expect(lines.every(({ isAuthentic, problem }) => isAuthentic && problem === null)).toBe(true);
});

it.each<[string, (lines: string[]) => string[], string[]]>([
  ['changed', (l) => l.with(2, (l[2] ?? '').replace('zeile', 'Zeile')), ['line 3 was changed']],
  [
    'given another MAC',
    (l) => l.with(2, (l[2] ?? '').replace(/.{5}"\}$/, 'AAAAA"}')),
    ['line 3 was changed'],
  ],
  [
    'given another number',
    (l) => l.with(2, (l[2] ?? '').replace('"n":3', '"n":9')),
    ['line 9 was changed', 'line 3 is missing'],
  ],
  ['without its MAC', (l) => l.with(2, '{"i":2}'), ['line 3 is damaged', 'line 3 is missing']],
  ['empty', (l) => l.toSpliced(2, 0, ''), ['line 3 is damaged']],
  ['removed', (l) => l.toSpliced(1, 1), ['line 2 is missing']],
  ['the first, removed with the second', (l) => l.slice(2), ['lines 1 to 2 are missing']],
  [
    'moved',
    (l) => [l[0], l[2], l[1], ...l.slice(3)] as string[],
    ['line 2 is missing', 'line 2 is repeated or in another place'],
  ],
  ['there twice', (l) => l.toSpliced(3, 0, l[2] ?? ''), ['line 3 is repeated or in another place']],
])('tells the number of a line that is %s', async (_what, change, expected) => {
  const log = await withLines(6);
  put(log, change(textsOf(log)));
  expect(await problems(log)).toEqual(expected);
  await expect(readFrom(log, null, () => {})).rejects.toThrow(BrokenLog);
});

it('is of one key, and of one name', async () => {
  const log = await withLines(2);
  for (const other of [{ key: Buffer.alloc(32, 8) }, { name: 'another' }]) {
    expect(await problems({ ...log, ...other })).toEqual(['line 1 was changed', 'line 2 was changed']);
    await expect(append({ ...log, ...other }, 3)).rejects.toThrow('its last line was changed');
  }
  expect(textsOf(log)).toHaveLength(2);
});

// Guards against: an append read the whole file, and what another process had appended within one tick of its clock was cut off.
it('appends behind the last whole line, whatever is before it and whatever the clock of the file says', async () => {
  const log = await withLines(3);
  const [first = '', ...rest] = textsOf(log);
  put(log, [first.replace('zeile', 'Zeile'), ...rest]);
  utimesSync(log.path, 0, 0);
  expect(await append(log, 4)).toBe(4);
  utimesSync(log.path, 0, 0);
  expect(await append(log, 5)).toBe(5);
  expect(await problems(log)).toEqual(['line 1 was changed']);
});

it.each([1, 1000, 262_143, 262_144, 300_000])(
  'cuts off what a crash left of a line: %i bytes',
  async (bytes) => {
    const log = await withLines(2);
    appendFileSync(log.path, 'x'.repeat(bytes));
    expect(await numbers(log)).toEqual([1, 2]);
    expect(await append(log, 3)).toBe(3);
    expect(await numbers(log)).toEqual([1, 2, 3]);
    const tornLog = newLog();
    writeFileSync(tornLog.path, 'x'.repeat(bytes));
    expect(await append(tornLog, 1)).toBe(1);
    expect(await problems(tornLog)).toEqual([]);
  },
);

it('reads lines that are longer than a piece', async () => {
  const log = newLog();
  const longLine = { text: 'x'.repeat(600_000) };
  for (let i = 0; i < 3; i += 1) await appendLine(log, () => Promise.resolve(longLine));
  expect(await problems(log)).toEqual([]);
  expect(await numbers(log)).toEqual([1, 2, 3]);
});

it('gives no number again that is known from elsewhere', async () => {
  const log = await withLines(3);
  put(log, textsOf(log).slice(0, 1));
  expect(await append(log, 4, 3)).toBe(4);
  expect(await problems(log)).toEqual(['lines 2 to 3 are missing']);
});

it('is read on from the last position, and from the start when another file took its place', async () => {
  const log = await withLines(3);
  const numbersRead: number[] = [];
  const take = ({ number }: { number: number }): void => void numbersRead.push(number);
  const first = await readFrom(log, null, take);
  expect(await readFrom(log, first, take)).toBe(first);
  await append(log, 4);
  const second = await readFrom(log, first, take);
  expect(numbersRead).toEqual([1, 2, 3, 4]);
  await dropLines(log, ({ at }) => at < '2026-01-02');
  await readFrom(log, second, take);
  expect(numbersRead).toEqual([1, 2, 3, 4, 2, 3, 4]);
  await expect(
    readFrom(log, null, () => {
      throw new Error('no line of ours');
    }),
  ).rejects.toThrow('line 2 is damaged');
});

it('misses what was read: lines cut off, an older file, no file', async () => {
  const log = await withLines(3);
  const older = `${log.path}.older`;
  copyFileSync(log.path, older);
  await append(log, 4);
  const position = await readFrom(log, null, () => {});
  put(log, textsOf(log).slice(0, 2));
  await expect(readFrom(log, position, () => {})).rejects.toThrow('line 4 was there and is missing');
  rmSync(log.path);
  await expect(readFrom(log, position, () => {})).rejects.toThrow('the file is missing');
  copyFileSync(older, log.path);
  await expect(readFrom(log, position, () => {})).rejects.toThrow('line 4 was there and is missing');
});

it('drops lines, says how many until when, and goes on with its numbers', async () => {
  const log = await withLines(9);
  await dropLines(log, ({ at }) => at < '2026-01-03');
  await dropLines(log, ({ at }) => at < '2026-01-05' || at === '2026-01-07');
  const lines = await read(log);
  expect(lines.map(({ number, dropped }) => [number, dropped])).toEqual([
    [4, { dropped: 4, until: '2026-01-04' }],
    [5, null],
    [6, null],
    [7, { dropped: 1, until: '2026-01-07' }],
    [8, null],
    [9, null],
  ]);
  expect(await problems(log)).toEqual([]);
  expect(await append(log, 10)).toBe(10);
  // The file's own note about dropped lines cannot be removed either.
  put(log, textsOf(log).slice(1));
  expect(await problems(log)).toEqual(['lines 1 to 4 are missing']);
});

it('keeps its last line whatever is dropped', async () => {
  const log = await withLines(3);
  await dropLines(log, () => true);
  expect(await numbers(log)).toEqual([2, 3]);
  expect(await append(log, 4)).toBe(4);
});

// Guards against: a rewrite that failed had set counters back, and no line could be appended any more.
it('stays as it was where a rewrite fails, and can be used', async () => {
  const log = await withLines(4);
  const before = readFileSync(log.path);
  const drop = (): Promise<void> =>
    dropLines(log, ({ at }) => {
      if (at === '2026-01-03') throw new Error('no space left');
      return true;
    });
  await expect(drop()).rejects.toThrow('no space left');
  expect(readFileSync(log.path)).toEqual(before);
  expect(readdirSync(dirname(log.path)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  put(log, textsOf(log).with(1, 'xyz'));
  await expect(dropLines(log, () => true)).rejects.toThrow('line 2 is damaged');
  writeFileSync(log.path, before);
  expect(await append(log, 5)).toBe(5);
  await dropLines(log, ({ at }) => at < '2026-01-03');
  expect(await numbers(log)).toEqual([2, 3, 4, 5]);
});

it('appends nothing where nothing is wanted or the file cannot be written, and everything after', async () => {
  const log = newLog();
  expect(await appendLine(log, () => Promise.resolve(null))).toBeNull();
  expect(existsSync(log.path)).toBe(false);
  mkdirSync(log.path);
  await expect(append(log, 1)).rejects.toThrow();
  rmdirSync(log.path);
  expect(await append(log, 1)).toBe(1);
});
