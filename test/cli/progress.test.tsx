import { execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { render } from 'ink';
import { describe, expect, it } from 'vitest';
import { ProgressBar, type ProgressState, progressText } from '../../src/cli/ui/progress.tsx';
import { PROGRAM, tempDir } from '../support/command.ts';
import { browserHeaders } from '../support/samples.ts';
import { makeBundle } from '../support/seal.ts';
import { initGpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';

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

/** Null when `script` of util-linux can make a pseudo-terminal. */
function missingScript(): string | null {
  try {
    execFileSync('script', ['-qec', 'true', '/dev/null'], { stdio: 'ignore' });
    return null;
  } catch {
    return 'script is not there (apt-get install util-linux)';
  }
}

describeWithTool('cli/progress in a terminal', missingScript(), () => {
  async function inTerminal(more: Record<string, string>): Promise<{ code: number | null; text: string }> {
    const { dataDir, targets } = await initGpd();
    const file = join(tempDir('terminal'), 'bundles.ndjson');
    const line = () => JSON.stringify({ bundle: makeBundle(targets[0]!), headers: browserHeaders() });
    writeFileSync(file, Array.from({ length: 400 }, line).join('\n'));
    const command = `stty cols 120 rows 30; '${process.execPath}' '${PROGRAM}' replay '${file}'`;
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      env: { PATH: process.env['PATH'], TERM: 'xterm-256color', GPD_DATA_DIR: dataDir, ...more },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    return new Promise((resolve) => child.once('close', (code) => resolve({ code, text })));
  }

  it('gpd replay draws the bar, then the table', async () => {
    const { code, text } = await inTerminal({});
    expect(code).toBe(0);
    expect(text).toContain('░');
    expect(text).toMatch(/\d+ bundles, [\d,]+ a second/);
    expect(text).toMatch(/REASON\s+BUNDLES\s+ok\s+400/);
  });

  it('NO_COLOR is honoured', async () => {
    const { text } = await inTerminal({ NO_COLOR: '1' });
    expect(text).toContain('bundles');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what is looked for
    expect(text).not.toMatch(/\u001b\[[\d;]*m/);
  });
});
