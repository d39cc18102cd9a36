import type { z } from 'zod';

/** Explains a wrong value and how to correct it, if its schema has no message. It never repeats the value. */

const NOUNS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

const FORMATS: Readonly<Record<string, string>> = {
  email: 'write an e-mail address',
  url: 'write a URL',
  date: 'write a date such as 2026-01-31',
  datetime: 'write a date and time such as 2026-01-31T12:00:00Z',
};

const ONE: Readonly<Record<string, string>> = { string: ' character', array: ' entry' };
const UNITS: Readonly<Record<string, string>> = { string: ' characters', array: ' entries' };

/** Lists the known fields and never the one that was sent: its name may be a misplaced secret. */
function knownFields(schema: unknown): string {
  const { shape } = schema as { readonly shape?: object };
  return shape ? `; its fields are ${Object.keys(shape).join(', ') || 'none'}` : '';
}

export const explainIssue: z.core.$ZodErrorMap = (issue) => {
  if (issue.code === 'invalid_type')
    return issue.input === undefined ? 'is missing' : `write ${NOUNS[issue.expected] ?? issue.expected}`;
  if (issue.code === 'too_small')
    return `at least ${issue.minimum}${issue.minimum === 1 ? (ONE[issue.origin] ?? '') : (UNITS[issue.origin] ?? '')}`;
  if (issue.code === 'too_big') return `at most ${issue.maximum}${UNITS[issue.origin] ?? ''}`;
  if (issue.code === 'invalid_value') return `write ${issue.values.map(String).join(' or ')}`;
  if (issue.code === 'unrecognized_keys') return `it has an unknown field${knownFields(issue.inst)}`;
  if (issue.code === 'invalid_format') return FORMATS[issue.format] ?? 'has the wrong form';
  return 'is not valid';
};
