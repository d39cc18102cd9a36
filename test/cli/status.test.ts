import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { ServerStatus } from '../../src/ops/status-service.ts';
import { tempDir } from '../support/command.ts';
import { expectCore, post } from '../support/expect.ts';
import { createBundle } from '../support/seal.ts';
import { startGpd } from '../support/server.ts';
import { createOwn } from './support/own.ts';

it('gpd status tells of the running server and of what the database holds', async () => {
  const gpd = await startGpd();
  for (let i = 0; i < 3; i += 1) expectCore(await post(gpd.url, createBundle(gpd.targets[0]!)), 'ok');
  const status = await gpd.json<ServerStatus>(['status', '--url', gpd.url]);
  expect(status).toMatchObject({
    server: { url: gpd.url, running: true, ready: true, version: status.version, notReady: [] },
    database: { kind: 'sqlite', lastBackupAt: null },
    tenants: 1,
    decisions: { total: 3, lastMinute: 3, lastHour: 3, lastDay: 3 },
    ledgerEntries: 2,
    webhooks: { waiting: 0, failed: 0 },
  });
  expect(Object.values(status.decisions.byClass)).toEqual([3]);
  expect(status.database.bytes).toBeGreaterThan(100_000);
  await gpd.json(['backup', join(tempDir('backups'), 'b')]);
  await gpd.stop();
  const { code, stdout } = await gpd.cli(['status', '--url', gpd.url, '--json']);
  expect(code).toBe(3);
  const stopped = JSON.parse(stdout) as ServerStatus;
  expect(stopped.server).toMatchObject({ running: false, ready: false, version: null });
  expect(Date.parse(stopped.database.lastBackupAt ?? '')).toBeLessThanOrEqual(Date.now());
  const words = await gpd.cli(['status', '--url', gpd.url]);
  expect(words.stdout).toMatch(/server +nothing answers[\s\S]*decisions +3 in a minute/);
});

it('gpd top tells from the database where there are no metrics', async () => {
  const { json } = await createOwn();
  expect(await json('top')).toMatchObject({ source: 'database', verdictsPerSecond: 0, ledgerEntries: 2 });
});
