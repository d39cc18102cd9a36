import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { runProgram, spawnGpd, tempDir } from '../../support/command.ts';

/** `gpd demo` leaves no files, whenever it is interrupted. */

describe.concurrent('gpd demo', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'that is ended by %s in the middle of its start',
    async (signal) => {
      const directory = tempDir('demo');
      const { child, exited } = spawnGpd(['demo', '--port', '0'], { env: { TMPDIR: directory } });
      // Waits only for the directory, which exists before its key and its database.
      await vi.waitFor(() => expect(readdirSync(directory)).toHaveLength(1), {
        timeout: 20_000,
        interval: 5,
      });
      child.kill(signal);
      expect(await exited).toEqual({ code: 0, signal: null });
      expect(existsSync(directory) && readdirSync(directory)).toEqual([]);
    },
  );

  it('that is ended while it writes its past', async () => {
    const directory = tempDir('demo');
    const args = ['demo', '--port', '0', '--visits', '100000'];
    const { child, exited, output } = spawnGpd(args, { env: { TMPDIR: directory } });
    await vi.waitFor(() => expect(output.stdout).toContain('/demo'), { timeout: 60_000, interval: 5 });
    child.kill('SIGINT');
    expect(await exited).toEqual({ code: 0, signal: null });
    expect(output.stderr).toBe('');
    expect(readdirSync(directory)).toEqual([]);
  });
});

it('gpd demo that cannot start, for its port or its directory, says so in a line and leaves nothing', async () => {
  const blocker = createServer();
  await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
  const { port } = blocker.address() as AddressInfo;
  const [directory, file] = [tempDir('demo'), join(tempDir('demo'), 'file')];
  writeFileSync(file, '');
  for (const [args, TMPDIR, word] of [
    [['--port', String(port)], directory, String(port)],
    [['--port', '0'], file, file],
  ] as const) {
    const ran = await runProgram(['demo', ...args], { env: { TMPDIR } });
    expect(ran).toMatchObject({ code: 78, stdout: '' });
    expect(ran.stderr).toContain(word);
    expect(ran.stderr.trim().split('\n')).toHaveLength(1);
  }
  await new Promise((resolve) => blocker.close(resolve));
  expect(readdirSync(directory)).toEqual([]);
});
