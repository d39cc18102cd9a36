import { appendFileSync, copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { BrokenChain, makeChainedLog } from '../../src/db/chained-log-files.ts';
import { tempDir } from '../support/command.ts';

const KEY = Buffer.alloc(32, 7);

function open(path: string, options: { key?: Buffer; name?: string; mayBeginBare?: boolean } = {}) {
  const lines: unknown[] = [];
  const { key = KEY, name = 'test' } = options;
  const log = makeChainedLog({
    path,
    key,
    name,
    ...(options.mayBeginBare === undefined ? {} : { mayBeginBare: options.mayBeginBare }),
    onLine: (body) => {
      if ((body as { bad?: unknown }).bad !== undefined) throw new Error('no line of ours');
      lines.push(body);
    },
  });
  return { log, lines };
}

const newPath = (): string => join(tempDir('chain'), 'a.log');
const linesOf = (path: string): string[] => readFileSync(path, 'utf8').split('\n').slice(0, -1);
const put = (path: string, lines: readonly string[]): void =>
  writeFileSync(path, lines.map((line) => `${line}\n`).join(''));

async function withLines(count: number): Promise<string> {
  const path = newPath();
  const { log } = open(path);
  for (let i = 0; i < count; i += 1) await log.append(() => ({ i, text: `zeile ${i} ü` }));
  return path;
}

async function problemOf(path: string, options = {}): Promise<unknown> {
  return open(path, options)
    .log.refresh()
    .then(
      () => null,
      (error: unknown) => error,
    );
}

it('gives back what was appended, by several logs of one file at once', async () => {
  const path = newPath();
  const [a, b] = [open(path), open(path)];
  await Promise.all(Array.from({ length: 40 }, (_, i) => (i % 2 ? a : b).log.append(() => ({ i }))));
  const reader = open(path);
  await reader.log.refresh();
  expect(reader.lines.map((line) => (line as { i: number }).i)).toEqual(
    Array.from({ length: 40 }, (_, i) => i),
  );
  await a.log.refresh();
  expect(a.lines).toEqual(reader.lines);
  const missing = newPath();
  await open(missing).log.refresh();
  expect(existsSync(missing)).toBe(false);
});

it('asks for the next line behind the lock, with all lines read', async () => {
  const path = newPath();
  const [a, b] = [open(path), open(path)];
  const once = (log: typeof a) => log.log.append(() => (log.lines.length > 0 ? null : { first: true }));
  await Promise.all([once(a), once(b), once(a)]);
  expect(linesOf(path)).toHaveLength(1);
});

it.each<[string, (lines: string[]) => string[], number]>([
  ['changed', (l) => l.with(2, (l[2] ?? '').replace('zeile', 'Zeile')), 3],
  ['with another MAC', (l) => l.with(2, (l[2] ?? '').replace(/.{5}"\}$/, 'AAAAA"}')), 3],
  ['without its MAC', (l) => l.with(2, '{"i":2}'), 3],
  ['no JSON', (l) => l.with(2, 'xyz'), 3],
  ['empty', (l) => l.with(2, ''), 3],
  ['removed', (l) => l.toSpliced(1, 1), 2],
  ['the first, removed', (l) => l.slice(1), 1],
  ['moved', (l) => [l[0], l[2], l[1], ...l.slice(3)] as string[], 2],
  ['there twice', (l) => l.toSpliced(3, 0, l[2] ?? ''), 4],
])('tells the number of a line that is %s', async (_what, change, line) => {
  const path = await withLines(6);
  put(path, change(linesOf(path)));
  const problem = await problemOf(path);
  expect(problem).toBeInstanceOf(BrokenChain);
  expect(problem).toMatchObject({ message: expect.stringContaining(`line ${line} `) });
  // Nothing is ever appended behind it.
  await expect(open(path).log.append(() => ({ i: 9 }))).rejects.toThrow(`line ${line} `);
});

it('is of one key, and of one name', async () => {
  const path = await withLines(2);
  expect(await problemOf(path, { key: Buffer.alloc(32, 8) })).toMatchObject({
    message: expect.stringContaining('line 1 '),
  });
  expect(await problemOf(path, { name: 'another' })).toMatchObject({
    message: expect.stringContaining('line 1 '),
  });
  expect(await problemOf(path)).toBeNull();
});

it('drops what a crash cut short, and tells a line that its reader does not know', async () => {
  const path = await withLines(2);
  appendFileSync(path, '{"i":2,"te');
  const { log, lines } = open(path);
  await log.append(() => ({ i: 3 }));
  expect(lines).toHaveLength(3);
  expect(linesOf(path)).toHaveLength(3);
  await log.append(() => ({ i: 4 }));
  // The process that wrote it does not judge its own line.
  await expect(log.append(() => ({ bad: true }))).rejects.toThrow();
  expect(await problemOf(path)).toMatchObject({ message: expect.stringContaining('line 5 ') });
});

it('misses what this process has read: lines cut off, an older file, no file', async () => {
  const path = await withLines(3);
  const older = `${path}.older`;
  copyFileSync(path, older);
  const { log } = open(path);
  await log.append(() => ({ i: 3 }));
  const whole = linesOf(path);
  writeFileSync(path, `${whole.slice(0, 2).join('\n')}\n`);
  await expect(log.refresh()).rejects.toThrow('line 4 was there and is missing');
  rmSync(path);
  await expect(log.append(() => ({ i: 4 }))).rejects.toThrow('the file is missing');
  copyFileSync(older, path);
  await expect(log.refresh()).rejects.toThrow('line 4 was there and is missing');
});

it('takes lines that are older than the chain where it is told so, and covers them from the first chained one on', async () => {
  const path = newPath();
  const options = { mayBeginBare: true };
  put(path, ['{"old":1}', '{"old":2}', '{"old":3}']);
  const { log, lines } = open(path, options);
  await log.append(() => ({ i: 1 }));
  expect(lines).toEqual([{ old: 1 }, { old: 2 }, { old: 3 }, { i: 1 }]);
  expect(await problemOf(path)).toMatchObject({ message: expect.stringContaining('line 1 ') });
  const whole = linesOf(path);
  for (const gone of [0, 1, 2]) {
    put(path, whole.toSpliced(gone, 1));
    expect(await problemOf(path, options)).toMatchObject({ message: expect.stringContaining('line 3 ') });
  }
  put(path, [...whole, '{"old":4}']);
  expect(await problemOf(path, options)).toMatchObject({ message: expect.stringContaining('line 5 ') });
});

it('is rewritten with fewer and with more lines, and others follow', async () => {
  const path = await withLines(5);
  const [here, there] = [open(path), open(path)];
  await there.log.refresh();
  await here.log.rewrite((body) => (body as { i: number }).i % 2 === 1, [{ more: 1 }, { more: 2 }]);
  expect(linesOf(path)).toHaveLength(5);
  await there.log.append(() => ({ i: 6 }));
  await here.log.refresh();
  expect(here.lines.slice(-3)).toEqual([{ more: 1 }, { more: 2 }, { i: 6 }]);
  const reader = open(path);
  await reader.log.refresh();
  expect(reader.lines.slice(0, 3)).toMatchObject([{ i: 1 }, { i: 3 }, { i: 4 }]);
  const made = newPath();
  await open(made).log.rewrite(() => true, [{ i: 1 }]);
  expect(linesOf(made)).toHaveLength(1);
});
