import { execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PROGRAM, tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { browserHeaders } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import { initGpd } from '../../support/server.ts';
import { describeWithTool } from '../../support/tools.ts';
import { createOwn } from '../support/own.ts';

/** Returns null if `script` of util-linux can open a pseudo-terminal. */
function missingScript(): string | null {
  try {
    execFileSync('script', ['-qec', 'true', '/dev/null'], { stdio: 'ignore' });
    return null;
  } catch {
    return 'script cannot make a terminal (apt-get install bsdutils, or util-linux)';
  }
}

interface Shown {
  readonly code: number | null;
  readonly text: string;
}

/** Runs gpd on a terminal of 120 columns and types `typed` at its first question. */
function inTerminal(args: readonly string[], env: object, typed = '', asks = 'Type yes'): Promise<Shown> {
  const command = ['stty cols 120 rows 30;', process.execPath, PROGRAM, ...args].join(' ');
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: { PATH: process.env['PATH'], TERM: 'xterm-256color', ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  let text = '';
  let hasAsked = false;
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    if (hasAsked || !text.includes(asks)) return;
    hasAsked = true;
    child.stdin.write(`${typed}\n`);
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, text })));
}

async function replay(env: Record<string, string>): Promise<Shown> {
  const { dataDir, targets } = await initGpd();
  const file = join(tempDir('terminal'), 'bundles.ndjson');
  const line = () => JSON.stringify({ bundle: createBundle(targets[0]!), headers: browserHeaders() });
  writeFileSync(file, Array.from({ length: 400 }, line).join('\n'));
  return inTerminal(['replay', file], { GPD_DATA_DIR: dataDir, ...env });
}

describeWithTool('cli/terminal', missingScript(), () => {
  it('gpd replay draws a bar with count, rate and time left, then the table', async () => {
    const { code, text } = await replay({});
    expect(code).toBe(0);
    expect(text).toContain('░');
    expect(text).toMatch(/\d+ bundles, [\d,]+ a second/);
    expect(text).toMatch(/REASON\s+BUNDLES\s+ok\s+400/);
  });

  it('NO_COLOR is honoured', async () => {
    const { text } = await replay({ NO_COLOR: '1' });
    expect(text).toMatch(/ok\s+400/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what is looked for
    expect(text).not.toMatch(/\u001b\[[\d;]*m/);
  });

  it('gpd serve says which address to open', async () => {
    const { env } = await createOwn();
    const shown = await inTerminal(['serve', '--port', '0'], env, '\u0003', 'Ctrl-C');
    expect(shown.text).toMatch(/gpd: open http:\/\/127\.0\.0\.1:\d+ in a browser/);
    expect(shown.text).toContain('"event":"stopped"');
  });

  it('gpd top draws in place until q', async () => {
    const { env } = await createOwn();
    const shown = await inTerminal(['top'], env, 'q', '2 entries');
    expect(shown.code).toBe(0);
    expect(shown.text).toMatch(/verdicts +0\.0 a second/);
    expect(shown.text).toContain('press q to quit');
  });

  it('a destructive command asks, and goes on for yes alone', async () => {
    const mine = await createOwn();
    const { env } = mine;
    await mine.json(`keys rotate ${KID}`);
    const state = async (): Promise<unknown> =>
      (await mine.query('SELECT state FROM seal_keys WHERE generation = 1'))[0]?.['state'];
    const no = await inTerminal(['keys', 'destroy', KID, '1'], env, 'y');
    expect(no.code).toBe(1);
    expect(no.text).toMatch(/nothing was changed/);
    expect(await state()).toBe('retiring');
    const yes = await inTerminal(['keys', 'destroy', KID, '1'], env, 'yes');
    expect(yes.code).toBe(0);
    expect(await state()).toBe('destroyed');
  });
});
