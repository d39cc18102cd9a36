import { describe, expect, it } from 'vitest';
import { ERRORS, type ErrorCode, Unavailable } from '../../src/lib/errors.ts';

/** Contract section 1, word for word, what section 12 adds as far as it is built, and 431 (RFC 6585, section 5). */
const CONTRACT: Readonly<Record<number, string>> = {
  400: 'malformed-sealed-bundle invalid-json invalid-request missing-kid attestation-failed',
  401: 'unauthenticated subject-not-identified',
  403: 'subject-only not-your-decision reviewer-only cross-tenant-denied reviewer-tenant-unbound not-your-data staff-export-elsewhere self-review-denied insufficient-scope origin-not-allowed not-your-principal secret-key-in-page',
  404: 'no-such-decision no-such-contest no-data no-retained-data no-such-case unknown-kid not-found',
  405: 'method-not-allowed',
  408: 'request-timeout',
  409: 'already-resolved claimed-by-another stale-version idempotency-conflict erased case-closed',
  413: 'payload-too-large',
  415: 'unsupported-media-type',
  422: 'unknown-purpose',
  429: 'rate-limited too-many-cases',
  431: 'headers-too-large',
  451: 'consent-missing',
  500: 'internal',
  503: 'unavailable',
};

const codes = Object.keys(ERRORS) as ErrorCode[];

describe('the table of errors', () => {
  it('is the one of the contract', () => {
    const table: Record<number, string> = {};
    for (const code of codes) {
      const [status] = ERRORS[code];
      table[status] = table[status] === undefined ? code : `${table[status]} ${code}`;
    }
    const sorted = (words: Readonly<Record<number, string>>): [string, string[]][] =>
      Object.entries(words).map(([status, list]) => [status, list.split(' ').sort()]);
    expect(sorted(table)).toEqual(sorted(CONTRACT));
  });

  it('says each code in a sentence', () => {
    for (const code of codes) expect(ERRORS[code][1], code).toMatch(/^[A-Z].*[.}]$/);
  });
});

it('Unavailable asks to come again in a second unless told otherwise', () => {
  expect(new Unavailable('full').retryAfterSeconds).toBe(1);
  expect(new Unavailable('full', 7, { cause: 'x' })).toMatchObject({ retryAfterSeconds: 7, cause: 'x' });
});
