import { describe, expect, it } from 'vitest';
import { wrapWords } from '../../src/cli/io-service.ts';
import { runGpd } from '../support/command.ts';
import { createOwn, type Own, wordsOf } from './support/own.ts';

/** Colours, and lines that are broken between words: for a terminal alone. */

const COLUMNS = 60;
const ESCAPE = '\u001b';
const RED_FAIL = `${ESCAPE}[31mfail${ESCAPE}[39m `;

const onTerminal = ({ env }: Own, line: string, extra = {}) =>
  runGpd(wordsOf(line), { env: { ...env, GPD_PORT: '9', TERM: 'xterm', ...extra }, columns: COLUMNS });

describe('gpd doctor on a terminal', () => {
  it('colours the word of a status alone, and breaks lines between words', async () => {
    const mine = await createOwn();
    const { stdout } = await onTerminal(mine, 'doctor');
    expect(stdout).toContain(`${RED_FAIL} `);
    expect(stdout.split(ESCAPE).length % 2).toBe(1);
    const plain = await onTerminal(mine, 'doctor', { NO_COLOR: '1' });
    const lines = plain.stdout.trimEnd().split('\n');
    expect(lines.filter((line) => line.length > COLUMNS)).toEqual([]);
    // No word was cut: the pipe has the same words.
    const piped = await runGpd(['doctor'], { env: { ...mine.env, GPD_PORT: '9' } });
    const words = (text: string) => text.split(/\s+/).filter((word) => word !== '');
    expect(words(plain.stdout)).toEqual(words(piped.stdout));
  });

  it.each([
    ['NO_COLOR', 'doctor', { NO_COLOR: '1' }],
    ['a terminal that knows no colours', 'doctor', { TERM: 'dumb' }],
    ['--json', 'doctor --json', {}],
  ])('%s: no colour', async (_name, line, env) => {
    const { stdout } = await onTerminal(await createOwn(), line, env);
    expect(stdout).not.toContain(ESCAPE);
    expect(stdout).toContain('terms.notice');
  });

  it('a pipe has no colour, and each sentence on one line', async () => {
    const mine = await createOwn();
    const { stdout } = await runGpd(['doctor'], { env: { ...mine.env, GPD_PORT: '9' } });
    expect(stdout).not.toContain(ESCAPE);
    expect(stdout).toMatch(/^fail +terms\.notice +people are not told who is responsible: acme$/m);
  });
});

it('a message on a terminal is broken between words, and behind its beginning', async () => {
  const { stderr } = await onTerminal(await createOwn(), 'apikeys revoke nope');
  expect(stderr).toMatch(/^gpd: /);
  expect(stderr.split('\n').filter((line) => line.length > COLUMNS)).toEqual([]);
});

describe('a line that is broken', () => {
  it.each([
    ['short', 10, 2, ['short']],
    ['one two three', 8, 2, ['one two', '  three']],
    ['exactly eight', 7, 2, ['exactly', '  eight']],
    ['a https://shop.example/long b', 8, 2, ['a', '  https://shop.example/long', '  b']],
    ['https://shop.example/long', 8, 2, ['https://shop.example/long']],
    ['fail  id  some words', 12, 4, ['fail  id', '    some', '    words']],
  ])('%j at %d', (text, columns, indent, lines) => {
    expect(wrapWords(text, columns, indent)).toEqual(lines);
  });
});
