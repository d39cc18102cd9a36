import { vi } from 'vitest';

/** Milliseconds. Ends what hangs, and no more: a busy machine takes many times what a quiet one does. */
const PATIENCE_MS = 60_000;

// vi.waitFor gives up after a second unless it is told otherwise, and vitest has no setting for that (expect.poll has one).
const { waitFor } = vi;
vi.waitFor = (callback, options) => {
  const { timeout = 0, interval = 20 } = typeof options === 'number' ? { timeout: options } : (options ?? {});
  return waitFor(callback, { timeout: Math.max(timeout, PATIENCE_MS), interval });
};
