import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tempDir } from '../../support/command.ts';
import { expectCore, post } from '../../support/expect.ts';
import { ask } from '../../support/http.ts';
import { createBundle } from '../../support/seal.ts';
import { startGpd } from '../../support/server.ts';
import { describeWithTool } from '../../support/tools.ts';

const BUILT = new URL('../../../dist/ingest/decrypt/worker.js', import.meta.url);

/** A decrypt thread that ends at its start until this file is there. */
function endingUntil(flag: string): URL {
  const program = `import { existsSync } from 'node:fs';
    if (existsSync(${JSON.stringify(flag)})) await import(${JSON.stringify(BUILT.href)});
    else process.exit(3);`;
  return new URL(`data:text/javascript,${encodeURIComponent(program)}`);
}

const oneProcessor = availableParallelism() > 1 ? null : 'one processor has no decrypt thread';

describeWithTool('a server whose decrypt thread has ended', oneProcessor, () => {
  it('answers rightly and is ready; readyz and doctor say that it is degraded, until it is not', async () => {
    const flag = join(tempDir('thread'), 'may-live');
    const gpd = await startGpd({ app: { decryptThread: endingUntil(flag) } });
    const readyz = async () => {
      const reply = await ask(gpd.url, '/readyz');
      return { code: reply.status, ...(reply.json() as object) };
    };
    const degraded = [expect.stringMatching(/decrypt thread has ended/) as string];
    const ready = { code: 200, status: 'ready', notReady: [] };
    await expect.poll(readyz).toMatchObject({ ...ready, degraded });
    expectCore(await post(gpd.url, createBundle(gpd.targets[0]!)), 'ok');
    const { stdout } = await gpd.cli(['doctor', '--json'], { env: { GPD_PORT: String(gpd.port) } });
    const { checks } = JSON.parse(stdout) as { checks: readonly { readonly id: string }[] };
    expect(checks.find(({ id }) => id === 'server.degraded')).toMatchObject({
      status: 'warn',
      detail: degraded[0],
      remedy: expect.stringContaining('Restart') as string,
    });
    expect(checks.find(({ id }) => id === 'server.health')).toMatchObject({ status: 'pass' });
    writeFileSync(flag, '');
    await expect.poll(readyz).toMatchObject({ ...ready, degraded: [] });
    await gpd.stop();
  });
});
