import { vi } from 'vitest';

/**
 * Milliseconds. The limit only stops a test that hangs: a busy machine is many times slower than an idle one.
 */
const PATIENCE_MS = 60_000;

// vi.waitFor stops after a second by default, and vitest
// has no setting to change that, unlike for expect.poll.
const { waitFor } = vi;
vi.waitFor = (callback, options) => {
  const { timeout = 0, interval = 20 } = typeof options === 'number' ? { timeout: options } : (options ?? {});
  return waitFor(callback, { timeout: Math.max(timeout, PATIENCE_MS), interval });
};
