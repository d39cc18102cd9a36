import { describe, expect, it } from 'vitest';
import { kidSchema, plaintextSchema } from '../../src/schema/bundle.ts';
import { INGEST_STATUS, visitorClassSchema } from '../../src/schema/responses.ts';
import { makePlaintext } from '../support/make.ts';

describe('a kid', () => {
  const takes = (kid: unknown): boolean => kidSchema.safeParse(kid).success;

  it.each(['a', 'A.b_c-9', '-', '...', '.a', '..a', 'a.', 'x'.repeat(64)])('may be %s', (kid) => {
    expect(takes(kid)).toBe(true);
  });

  it.each(['', '.', '..', 'a|b', 'a b', 'a/b', 'ä', 'a\n', 'x'.repeat(65), 1, null])(
    'may not be %j',
    (kid) => {
      expect(takes(kid)).toBe(false);
    },
  );
});

it('__proto__ in signals does not reach a prototype', () => {
  const polluting = '"signals":{"__proto__":{"polluted":1},';
  const text = JSON.stringify(makePlaintext()).replace('"signals":{', polluting);
  const parsed = plaintextSchema.parse(JSON.parse(text));
  expect('polluted' in parsed.signals).toBe(false);
  expect('polluted' in {}).toBe(false);
});

describe('the ingest response', () => {
  it('maps each reason to one status (interface section 7)', () => {
    expect(INGEST_STATUS).toEqual({
      ok: 200,
      'consent-missing': 451,
      replay: 409,
      stale: 400,
      'decrypt-failed': 400,
      'unknown-key': 401,
      unknown: 500,
    });
  });

  it('has the four classes of the interface', () => {
    const classes = ['human', 'declared_agent', 'undeclared_automation', 'unknown'];
    expect(visitorClassSchema.options).toEqual(classes);
  });
});
