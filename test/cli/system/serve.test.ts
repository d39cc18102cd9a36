import { expect, it, vi } from 'vitest';
import { ask } from '../../support/http.ts';
import { startProcess } from '../../support/process.ts';

it('gpd serve reads its files anew on SIGHUP, and goes on', async () => {
  const gpd = await startProcess();
  process.kill(gpd.pid, 'SIGHUP');
  await vi.waitFor(() => expect(gpd.logs()).toContain('"event":"reloaded"'), { timeout: 20_000 });
  expect((await ask(gpd.url, '/readyz')).status).toBe(200);
  expect(await gpd.stop()).toMatchObject({ code: 0 });
});
