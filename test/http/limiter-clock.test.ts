import { afterEach, expect, it, vi } from 'vitest';
import { createMemoryLimiter } from '../../src/http/limiter.ts';

afterEach(() => void vi.useRealTimers());

it('a window is never longer than its seconds, though the clock was set back since it began', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const limiter = createMemoryLimiter({ points: 1, seconds: 60 });
  expect(await limiter('a')).toBe(0);
  expect(await limiter('a')).toBe(60);
  vi.setSystemTime(Date.now() - 3_600_000);
  expect(await limiter('a')).toBe(60);
});
