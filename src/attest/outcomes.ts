/** The result of a ceremony; the client gets one refusal for all but the first four. */
export const OUTCOMES = [
  'created',
  'used',
  'bound',
  'refreshed',
  'malformed',
  'challenge',
  'signature',
  'unknown',
  'cloned',
  'replay',
] as const;
export type Outcome = (typeof OUTCOMES)[number];
