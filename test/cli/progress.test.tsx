import { PassThrough } from 'node:stream';
import { render } from 'ink';
import { describe, expect, it } from 'vitest';
import { ProgressBar, type ProgressState, progressText } from '../../src/cli/ui/progress.tsx';

const START = 1_700_000_000_000;

function state(parts: Partial<ProgressState>): ProgressState {
  return { done: 0, bytes: 0, totalBytes: null, startedAt: START, now: START, ...parts };
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
    expect(progressText(state(parts))).toBe(text);
  });

  it('never says NaN or Infinity', () => {
    for (const done of [0, 1, 1e9]) {
      for (const totalBytes of [null, 0, 1, 1e12]) {
        for (const now of [START - 1000, START, START + 1]) {
          expect(progressText(state({ done, bytes: done, totalBytes, now }))).not.toMatch(/NaN|Infinity|-\d/);
        }
      }
    }
  });

  it('is drawn beside a bar', () => {
    const stream = new PassThrough();
    let drawn = '';
    stream.on('data', (chunk: Buffer) => {
      drawn += chunk.toString();
    });
    Object.assign(stream, { columns: 100, isTTY: false });
    const half = state({ done: 500, bytes: 50, totalBytes: 100, now: START + 5000 });
    const options = {
      stdout: stream as unknown as NodeJS.WriteStream,
      patchConsole: false,
      exitOnCtrlC: false,
    };
    const view = render(<ProgressBar state={half} />, { ...options, debug: true });
    view.unmount();
    expect(drawn).toContain(`${'█'.repeat(15)}${'░'.repeat(15)}`);
    expect(drawn).toContain('500 bundles, 100 a second, 5 s left');
  });
});
