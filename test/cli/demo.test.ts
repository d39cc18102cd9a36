import { existsSync, readdirSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { spawnGpd, tempDir } from '../support/command.ts';

/** `gpd demo` ends as it says: nothing is left, whenever it is told to end. */

describe.concurrent('gpd demo', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'that is ended by %s in the middle of its start',
    async (signal) => {
      const directory = tempDir('demo');
      const { child, exited } = spawnGpd(['demo', '--port', '0'], { env: { TMPDIR: directory } });
      // The directory is there before its key and its database are.
      await vi.waitFor(() => expect(readdirSync(directory)).toHaveLength(1), {
        timeout: 20_000,
        interval: 5,
      });
      child.kill(signal);
      expect(await exited).toEqual({ code: 0, signal: null });
      expect(existsSync(directory) && readdirSync(directory)).toEqual([]);
    },
  );
});
