/** The result of a ceremony; the client gets one refusal for all but the first two. */
export const OUTCOMES = [
  'created',
  'used',
  'malformed',
  'challenge',
  'signature',
  'unknown',
  'cloned',
  'replay',
] as const;
export type Outcome = (typeof OUTCOMES)[number];
