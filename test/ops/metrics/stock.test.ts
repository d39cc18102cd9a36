import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { registerStock } from '../../../src/ops/metrics/meters-service.ts';
import type { Stock } from '../../../src/ops/metrics/stock-store.ts';

const STOCK: Stock = {
  kind: 'sqlite',
  tenants: 2,
  ledgerEntries: 30,
  webhooksWaiting: 1,
  webhooksFailed: 4,
  databaseBytes: 5000,
  walBytes: 60,
  overdueContests: 0,
  incompleteErasures: 0,
  lastBackupAt: null,
  lastSweepAt: null,
  newestCheckpointAt: null,
  oldestSealKeyAt: null,
};

describe('gauges of what lies in the database', () => {
  it('are not there while it cannot be read, told once, and there again afterwards', async () => {
    const registry = new Registry();
    let now = 0;
    let isGone = false;
    const faults: unknown[] = [];
    const read = () => (isGone ? Promise.reject(new Error('gone')) : Promise.resolve(STOCK));
    registerStock(registry, { read, monotonic: () => now, onFault: (error) => faults.push(error) });
    expect(await registry.metrics()).toContain('\ngpd_tenants 2\n');
    isGone = true;
    now += 10_000;
    // Zeros would be false: nobody has read the database.
    expect(await registry.metrics()).not.toMatch(/^gpd_\w+ \d/m);
    expect(faults).toHaveLength(1);
    isGone = false;
    expect(await registry.metrics()).toContain('\ngpd_webhooks_failed 4\n');
  });

  it('say of PostgreSQL, whose own backups gpd does not see, nothing about backups', async () => {
    const metricsOf = async (kind: Stock['kind']): Promise<string> => {
      const registry = new Registry();
      registerStock(registry, { read: async () => ({ ...STOCK, kind }), onFault: () => {} });
      return registry.metrics();
    };
    expect(await metricsOf('sqlite')).toContain('\ngpd_last_backup_timestamp_seconds 0\n');
    expect(await metricsOf('postgres')).not.toMatch(/^gpd_last_backup_timestamp_seconds /m);
  });

  it('keep no other metric waiting for a database that hangs, and take one connection of it', async () => {
    const registry = new Registry();
    let now = 0;
    const faults: unknown[] = [];
    const reads: ((stock: Stock) => void)[] = [];
    const read = () => new Promise<Stock>((resolve) => reads.push(resolve));
    const onFault = (error: unknown): unknown => faults.push(error);
    registerStock(registry, { read, monotonic: () => now, onFault, limitMs: 20 });
    for (let i = 0; i < 3; i += 1) {
      expect(await registry.metrics()).not.toMatch(/^gpd_\w+ \d/m);
      now += 10_000;
    }
    expect([reads.length, faults.length]).toEqual([1, 1]);
    reads[0]?.(STOCK);
    await Promise.resolve();
    const scrape = registry.metrics();
    await expect.poll(() => reads.length, { interval: 1 }).toBe(2);
    reads[1]?.(STOCK);
    expect(await scrape).toContain('\ngpd_tenants 2\n');
  });
});
