import { describe, expect, it } from 'vitest';
import { parseDuration } from '../../src/cli/command-service.ts';
import { commandFailureOf } from '../../src/cli/failure-service.ts';
import { EXIT } from '../../src/cli/io-service.ts';
import { splitLines } from '../../src/cli/replay/line-files.ts';
import { ERRORS, type ErrorCode, Refusal, TenantGone, Unavailable } from '../../src/lib/errors.ts';

/** Durations, lines of a file and exit codes: pure functions of the commands. */

describe('parseDuration', () => {
  it.each([
    ['30s', 30_000],
    ['15m', 900_000],
    ['12h', 43_200_000],
    ['007d', 604_800_000],
    ['999999d', 86_399_913_600_000],
  ])('reads %s', (text, ms) => expect(parseDuration(text)).toBe(ms));

  it.each(['', '7', '7 d', '7d\n', '-7d', '1.5h', '7D', '7w', '1h30m', '1000000s', '٧d'])(
    'refuses %j',
    (text) => expect(parseDuration(text)).toBeNull(),
  );
});

describe('the lines of gpd replay', () => {
  async function linesOf(text: string, size: number): Promise<{ text: string; bytes: number }[]> {
    const bytes = Buffer.from(text);
    async function* chunks(): AsyncGenerator<Buffer> {
      for (let i = 0; i < bytes.length; i += size) yield bytes.subarray(i, i + size);
    }
    const lines = [];
    for await (const line of splitLines(chunks())) lines.push(line);
    return lines;
  }

  it.each([1, 2, 3, 7, 1000])('end at LF and CRLF, wherever a chunk of %i bytes ends', async (size) => {
    const lines = await linesOf('{"a":"ä€😀"}\r\n\n  \nlast \u2028 one', size);
    expect(lines.map(({ text }) => text)).toEqual(['{"a":"ä€😀"}', '', '  ', 'last \u2028 one']);
    expect(lines.map(({ bytes }) => bytes)).toEqual([19, 20, 23, 35]);
    expect((await linesOf('a\nb\n', size)).map(({ text }) => text)).toEqual(['a', 'b']);
    expect(await linesOf('', size)).toEqual([]);
  });
});

describe('the exit code (contract section 9)', () => {
  const KINDS = {
    usage: [400, 405, 413, 415, 422, 431],
    notFound: [401, 404],
    notAllowed: [403, 451],
    conflict: [409],
    tryAgain: [408, 429, 503],
    failure: [500],
  };

  it.each(Object.keys(ERRORS) as ErrorCode[])('of %s is that of its kind', (code) => {
    const [status, sentence] = ERRORS[code];
    const { exit, message } = commandFailureOf(new Refusal(code, { details: ['one thing', 'another'] }));
    const kinds = Object.entries(KINDS).filter(([, statuses]) => statuses.includes(status));
    expect(kinds.map(([kind]) => kind)).toEqual([exit]);
    expect(message).toBe(`${sentence.replace(/\.$/, '')}: one thing; another`);
  });

  it('is a number of the contract, and a tenant that went or a database that is away has one', () => {
    expect(EXIT).toMatchObject({
      failure: 1,
      usage: 2,
      notFound: 3,
      notAllowed: 4,
      conflict: 7,
      tryAgain: 75,
    });
    expect(commandFailureOf(new TenantGone()).exit).toBe('notFound');
    expect(commandFailureOf(new Unavailable('the database is busy')).exit).toBe('tryAgain');
  });
});
