import { expect, it } from 'vitest';
import { commandFailureOf } from '../../src/cli/failure.ts';
import { EXIT } from '../../src/cli/io.ts';
import { ERRORS, type ErrorCode, Refusal, TenantGone, Unavailable } from '../../src/lib/errors.ts';

/** Contract section 9: 0 ok, 1 failure, 2 usage, 3 not found, 4 not allowed, 5 incomplete, 7 conflict, 75 try again. */
const CODES: Readonly<Record<number, number>> = {
  400: 2,
  401: 3,
  403: 4,
  404: 3,
  405: 2,
  408: 75,
  409: 7,
  413: 2,
  415: 2,
  422: 2,
  429: 75,
  431: 2,
  451: 4,
  500: 1,
  503: 75,
};

it.each(Object.keys(ERRORS) as ErrorCode[])('%s ends every command with the code of its kind', (code) => {
  const { exit, message } = commandFailureOf(new Refusal(code, { details: ['one thing', 'another'] }));
  expect(EXIT[exit]).toBe(CODES[ERRORS[code][0]]);
  expect(message).toBe(`${ERRORS[code][1].replace(/\.$/, '')}: one thing; another`);
});

it('a tenant that went meanwhile is not found, and a database that is away is to be tried again', () => {
  expect(commandFailureOf(new TenantGone()).exit).toBe('notFound');
  expect(commandFailureOf(new Unavailable('the database is busy')).exit).toBe('tryAgain');
});
