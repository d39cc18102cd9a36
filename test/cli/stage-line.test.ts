import { describe, expect, it, vi } from 'vitest';
import { makeStageLine, type StageState, stageText } from '../../src/cli/stage-line.ts';

const START = 1_700_000_000_000;
const state = (parts: Partial<StageState>): StageState => ({
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
    expect(stageText(state(parts))).toBe(text);
  });

  it('is silent for two seconds, then said now and then where there is no terminal', () => {
    const said: [ms: number, text: string][] = [];
    let now = START;
    const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      said.push([now - START, String(text)]);
      return true;
    });
    const line = makeStageLine(() => now);
    for (; now < START + 25_000; now += 100) line.update('writing', now - START, 100_000);
    line.end();
    write.mockRestore();
    expect(said.map(([ms]) => ms)).toEqual([2000, 12_000, 22_000]);
    expect(said.join('')).not.toMatch(/\r|NaN|Infinity/);
  });
});
