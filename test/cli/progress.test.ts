import { PassThrough } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import { io, withIo } from '../../src/cli/io.ts';
import {
  type BarState,
  barText,
  createBar,
  createStageLine,
  type StageState,
  stageText,
} from '../../src/cli/progress.ts';

const START = 1_700_000_000_000;

function state(parts: Partial<BarState>): BarState {
  return { unit: 'bundles', done: 0, bytes: 0, totalBytes: null, startedAt: START, now: START, ...parts };
}

describe('the line of progress', () => {
  it.each([
    [{}, '0 bundles, 0 a second'],
    [{ done: 1500, now: START + 1000 }, '1,500 bundles, 1,500 a second'],
    [
      { done: 500, bytes: 50, totalBytes: 100, now: START + 5000 },
      '50 %, 500 bundles, 100 a second, 5 s left',
    ],
    [
      { done: 10, bytes: 1, totalBytes: 100, now: START + 2000 },
      '1 %, 10 bundles, 5 a second, 3 min 18 s left',
    ],
    [{ done: 9, bytes: 120, totalBytes: 100, now: START + 1000 }, '100 %, 9 bundles, 9 a second, 0 s left'],
    [{ done: 0, bytes: 0, totalBytes: 100, now: START + 1000 }, '0 bundles, 0 a second'],
    [{ done: 1, bytes: 1, totalBytes: 0, now: START + 1000 }, '100 %, 1 bundles, 1 a second, 0 s left'],
  ])('%j says %s', (parts, text) => {
    expect(barText(state(parts)).replace(/^[█░]{30} /, '')).toBe(text);
  });

  it('never says NaN or Infinity', () => {
    for (const done of [0, 1, 1e9]) {
      for (const totalBytes of [null, 0, 1, 1e12]) {
        for (const now of [START - 1000, START, START + 1]) {
          expect(barText(state({ done, bytes: done, totalBytes, now }))).not.toMatch(/NaN|Infinity|-\d/);
        }
      }
    }
  });

  it('is drawn beside a bar', () => {
    const half = state({ done: 500, bytes: 50, totalBytes: 100, now: START + 5000 });
    expect(barText(half)).toBe(
      `${'█'.repeat(15)}${'░'.repeat(15)} 50 %, 500 bundles, 100 a second, 5 s left`,
    );
  });

  it('is drawn over itself on a terminal, no wider than that, and stays when the work is done', async () => {
    const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 40 });
    await withIo({ ...io(), stderr }, () => {
      const bar = createBar('bundles');
      bar.update({ done: 1, bytes: 1, totalBytes: 2 });
      bar.update({ done: 2, bytes: 2, totalBytes: 2 });
      bar.end();
      return Promise.resolve();
    });
    expect(String(stderr.read())).toBe(`\r\u001b[K${'█'.repeat(15)}${'░'.repeat(15)} 50 %, 1 \n`);
  });
});

const stage = (parts: Partial<StageState>): StageState => ({
  stage: 'writing',
  done: 0,
  total: 0,
  startedAt: START,
  now: START,
  ...parts,
});

describe('the line about a backup', () => {
  it.each([
    [{}, 'writing'],
    [{ total: 100e6 }, 'writing'],
    [
      { done: 50e6, total: 200e6, now: START + 1000 },
      'writing  25 %, 50 of 200 MB, 50 MB a second, 3 s left',
    ],
    [
      { stage: 'copying' as const, done: 300e6, total: 200e6, now: START + 2000 },
      'copying  100 %, 300 of 200 MB, 150 MB a second, 0 s left',
    ],
  ])('%j says %s', (parts, text) => {
    expect(stageText(stage(parts))).toBe(text);
  });

  it('is silent for two seconds, then said now and then where there is no terminal', () => {
    const printed: [ms: number, text: string][] = [];
    vi.useFakeTimers({ now: START, toFake: ['Date'] });
    const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      printed.push([Date.now() - START, String(text)]);
      return true;
    });
    const line = createStageLine();
    for (let ms = 0; ms < 25_000; ms += 100) {
      vi.setSystemTime(START + ms);
      line.update('writing', ms, 100_000);
    }
    line.end();
    write.mockRestore();
    vi.useRealTimers();
    expect(printed.map(([ms]) => ms)).toEqual([2000, 12_000, 22_000]);
    expect(printed.join('')).not.toMatch(/\r|NaN|Infinity/);
  });
});
