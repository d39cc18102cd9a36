/** What came of a ceremony; all but the first two are one refusal to whoever asks. */
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
