import type { NotRun, RunNames } from '../lib/types.ts';

/** Browsers that no program of this matrix can start. Named all the same: a gap that nobody sees is a claim. */

const BY_HAND = 'open the shop page of `npm run demo` in it by hand';

const person = (browser: string): RunNames => ({
  browser,
  driver: '-',
  setup: 'as installed',
  truth: 'person',
});

export const ELSEWHERE: readonly NotRun[] = [
  { names: person('Safari'), why: `it runs on macOS only: ${BY_HAND} there` },
  { names: person('Safari on iOS'), why: `it needs an iPhone or iPad: ${BY_HAND}` },
  { names: person('Chrome on Android'), why: `it needs a phone: ${BY_HAND}` },
  {
    names: person('Tor Browser'),
    why: `its launcher fetches it from its own host, and it does not reach localhost: allow that in about:config and ${BY_HAND}`,
  },
];
