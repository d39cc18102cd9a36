import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { endWithError } from '../../src/cli/failure.ts';
import {
  alignColumns,
  CommandFailed,
  type Io,
  print,
  printableJson,
  printLine,
  say,
  withIo,
} from '../../src/cli/io.ts';

/** Text of strangers never steers a terminal. */

const ESC = '\u001b';
const HOSTILE = `Ads${ESC}[1A${ESC}[2K${ESC}]0;pwned\u0007\r\u009b1A\u202egpj\u2066\u007f`;
const STEERING = /(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/u;

async function captureOutput(
  work: () => void,
  globalOptions: Io['globalOptions'] = {},
): Promise<{ stdout: string; stderr: string }> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const streams = {
    env: {},
    stdin: new PassThrough(),
    stdout,
    stderr,
    exitCode: 0,
    globalOptions,
    leave: () => {},
  };
  await withIo(streams, () => Promise.resolve(work()));
  const read = (stream: PassThrough): string => String((stream.read() as Buffer | null) ?? '');
  return { stdout: read(stdout), stderr: read(stderr) };
}

it('shows a replacement for each character that steers, in cells, lines and messages', async () => {
  const { stdout, stderr } = await captureOutput(() => {
    for (const line of alignColumns([
      ['id', HOSTILE],
      ['next', 'a\nforged row'],
    ]))
      printLine(line);
    printLine(HOSTILE);
    say(HOSTILE);
    endWithError(new CommandFailed('failure', HOSTILE));
  });
  expect(stdout).not.toMatch(STEERING);
  expect(stderr).not.toMatch(STEERING);
  expect(stdout).toContain('Ads\u{fffd}[1A\u{fffd}[2K\u{fffd}]0;pwned');
  expect(stdout).not.toContain('\nforged row');
});

it('keeps columns aligned by what is shown', async () => {
  const [first, second] = alignColumns([
    [`a${ESC}b`, 'x'],
    ['abc', 'y'],
  ]);
  expect(first?.indexOf('x')).toBe(second?.indexOf('y'));
});

it('escapes in JSON what JSON allows, and changes no value', async () => {
  const value = { text: `${HOSTILE}\u2028\u{e0041}ü\u{1f600}`, [HOSTILE]: 1 };
  const { stdout } = await captureOutput(() => print(value, () => []), { json: true });
  expect(stdout).not.toMatch(STEERING);
  expect(stdout).toContain('ü\u{1f600}');
  expect(JSON.parse(stdout)).toEqual(value);
  expect(printableJson('{"a":"b"}')).toBe('{"a":"b"}');
});
