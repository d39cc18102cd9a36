import { PassThrough } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import { endWithError } from '../../src/cli/failure-service.ts';
import {
  alignColumns,
  CommandFailed,
  type Io,
  io,
  print,
  printableJson,
  printLine,
  say,
  withIo,
} from '../../src/cli/io-service.ts';
import {
  type BarState,
  barText,
  createBar,
  createStageLine,
  stageText,
} from '../../src/cli/progress-service.ts';

/** Everything that a command shows: text of strangers never steers a terminal, and progress is one line. */

const ESC = '\u001b';
const HOSTILE = `Ads${ESC}[1A${ESC}[2K${ESC}]0;pwned\u0007\r\u009b1A\u202egpj\u2066\u007f`;
const STEERING = /(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/u;

/** @returns what the work wrote to stdout and stderr */
async function captureOutput(work: () => void, streams: Partial<Io> = {}): Promise<[string, string]> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  await withIo({ ...io(), stdout, stderr, exitCode: 0, globalOptions: {}, ...streams }, async () => work());
  return [String(stdout.read() ?? ''), String(stderr.read() ?? '')];
}

describe('text of a stranger', () => {
  it('shows a replacement for each character that steers, in cells, lines and messages', async () => {
    const [stdout, stderr] = await captureOutput(() => {
      const rows = [
        ['id', HOSTILE],
        ['next', 'a\nforged row'],
      ];
      for (const line of alignColumns(rows)) printLine(line);
      printLine(HOSTILE);
      say(HOSTILE);
      endWithError(new CommandFailed('failure', HOSTILE));
    });
    expect(stdout).not.toMatch(STEERING);
    expect(stderr).not.toMatch(STEERING);
    expect(stdout).toContain('Ads\u{fffd}[1A\u{fffd}[2K\u{fffd}]0;pwned');
    expect(stdout).not.toContain('\nforged row');
  });

  it('keeps columns aligned by what is shown', () => {
    const [first, second] = alignColumns([
      [`a${ESC}b`, 'x'],
      ['abc', 'y'],
    ]);
    expect(first?.indexOf('x')).toBe(second?.indexOf('y'));
  });

  it('is escaped in JSON where JSON allows it, and no value is changed', async () => {
    const value = { text: `${HOSTILE}\u2028\u{e0041}ü\u{1f600}`, [HOSTILE]: 1 };
    const work = () => print(value, () => []);
    const [stdout] = await captureOutput(work, { globalOptions: { json: true } });
    expect(stdout).not.toMatch(STEERING);
    expect(stdout).toContain('ü\u{1f600}');
    expect(JSON.parse(stdout)).toEqual(value);
    expect(printableJson('{"a":"b"}')).toBe('{"a":"b"}');
  });
});

const START = 1_700_000_000_000;
const bar = (parts: Partial<BarState>): string =>
  barText({ unit: 'bundles', done: 0, bytes: 0, totalBytes: null, startedAt: START, now: START, ...parts });
const stage = (parts: Partial<Parameters<typeof stageText>[0]>): string =>
  stageText({ stage: 'writing', done: 0, total: 0, startedAt: START, now: START, ...parts });

describe('the line of progress', () => {
  it.each([
    [{ done: 1500, now: START + 1000 }, '1,500 bundles, 1,500 a second'],
    [
      { done: 10, bytes: 1, totalBytes: 100, now: START + 2000 },
      '1 %, 10 bundles, 5 a second, 3 min 18 s left',
    ],
    [{ done: 9, bytes: 120, totalBytes: 100, now: START + 1000 }, '100 %, 9 bundles, 9 a second, 0 s left'],
    [{ bytes: 0, totalBytes: 100, now: START + 1000 }, '0 bundles, 0 a second'],
  ])('%j says %s', (parts, text) => {
    expect(bar(parts).replace(/^[█░]{30} /, '')).toBe(text);
  });

  it.each([
    [{}, 'writing'],
    [
      { done: 50e6, total: 200e6, now: START + 1000 },
      'writing  25 %, 50 of 200 MB, 50 MB a second, 3 s left',
    ],
    [
      { stage: 'copying' as const, done: 300e6, total: 200e6, now: START + 2000 },
      'copying  100 %, 300 of 200 MB, 150 MB a second, 0 s left',
    ],
  ])('of a backup: %j says %s', (parts, text) => expect(stage(parts)).toBe(text));

  it('never says NaN or Infinity', () => {
    for (const done of [0, 1, 1e9])
      for (const totalBytes of [null, 0, 1, 1e12])
        for (const now of [START - 1000, START, START + 1])
          expect(bar({ done, bytes: done, totalBytes, now })).not.toMatch(/NaN|Infinity|-\d/);
  });

  it('is drawn over itself on a terminal, no wider than that, and stays when the work is done', async () => {
    const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 40 });
    const draw = (): void => {
      const line = createBar('bundles');
      line.update({ done: 1, bytes: 1, totalBytes: 2 });
      line.update({ done: 2, bytes: 2, totalBytes: 2 });
      line.end();
    };
    await captureOutput(draw, { stderr });
    expect(String(stderr.read())).toBe(`\r${ESC}[K${'█'.repeat(15)}${'░'.repeat(15)} 50 %, 1 \n`);
  });

  it('is silent for two seconds, then said now and then where there is no terminal', async () => {
    const saidAt: number[] = [];
    const stderr = new PassThrough().on('data', () => saidAt.push(Date.now() - START));
    vi.useFakeTimers({ now: START, toFake: ['Date'] });
    await captureOutput(
      () => {
        const line = createStageLine();
        for (let ms = 0; ms < 25_000; ms += 100) {
          vi.setSystemTime(START + ms);
          line.update('writing', ms, 100_000);
        }
        line.end();
      },
      { stderr },
    );
    vi.useRealTimers();
    expect(saidAt).toEqual([2000, 12_000, 22_000]);
  });
});
