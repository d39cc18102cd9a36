import { expect, it } from 'vitest';
import { makeDigestSet } from '../../src/lib/digest-set.ts';

it('knows what was added, however often the table doubles', () => {
  const set = makeDigestSet('salt');
  for (let round = 0; round < 2; round += 1) {
    for (let i = 0; i < 20_000; i += 1) {
      if (set.add(`text ${i}`) !== (round === 0)) throw new Error(`text ${i} in round ${round}`);
    }
  }
  expect(set.add('text 20000')).toBe(true);
});

it.each([0, 767, 768, 100_000])(
  'takes at most 43 bytes a text past the first thousand: %i texts',
  (count) => {
    const set = makeDigestSet('salt');
    for (let i = 0; i < count; i += 1) set.add(`${i}${'x'.repeat(200)}`);
    expect(set.bytes()).toBeLessThanOrEqual(Math.max(16_384, count * 43));
  },
);

it('tells texts apart that share all but one character', () => {
  const set = makeDigestSet('');
  expect([set.add('acme|a'), set.add('acme|b'), set.add('acm|ea'), set.add('acme|a')]).toEqual([
    true,
    true,
    true,
    false,
  ]);
});
