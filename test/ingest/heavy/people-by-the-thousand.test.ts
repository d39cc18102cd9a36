import { expect, it } from 'vitest';
import { judgeCorpus } from '../../../bench/matrix/corpus.ts';

it('of 2,000 generated people at most 0.1 % are called automation', () => {
  const { rows, byClass, automation } = judgeCorpus(2000, 1);
  expect(rows).toBe(2000);
  expect(byClass['human']).toBeGreaterThan(1900);
  expect(automation.length, automation.join('; ')).toBeLessThanOrEqual(2);
});
