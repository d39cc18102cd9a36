import { describe, expect, it } from 'vitest';
import { parseDuration } from '../../src/cli/input.ts';

describe('parseDuration', () => {
  it.each([
    ['30s', 30_000],
    ['15m', 900_000],
    ['12h', 43_200_000],
    ['7d', 604_800_000],
    ['0d', 0],
    ['007d', 604_800_000],
    ['999999d', 86_399_913_600_000],
  ])('reads %s', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    '',
    '7',
    'd',
    '7 d',
    ' 7d',
    '7d ',
    '7d\n',
    '-7d',
    '+7d',
    '1.5h',
    '7D',
    '7w',
    '1h30m',
    '1000000s',
    '٧d',
  ])('refuses %j', (text) => {
    expect(parseDuration(text)).toBeNull();
  });
});
