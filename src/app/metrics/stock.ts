import { Gauge, type Registry } from 'prom-client';
import { SECOND } from '../../lib/clock.ts';
import type { Stock } from '../../storage/stock.ts';

/** What lies in the database, read when somebody asks and not more often than every ten seconds. */

const KEEP_MS = 10 * SECOND;

export function registerStock(
  registry: Registry,
  read: () => Promise<Stock>,
  onFault: (error: unknown) => void,
): void {
  let known: Promise<Stock> | null = null;
  let readAt = 0;
  const stock = (): Promise<Stock> => {
    if (known === null || performance.now() - readAt >= KEEP_MS) {
      readAt = performance.now();
      known = read();
      known.catch(() => {
        known = null;
      });
    }
    return known;
  };
  const gauge = (name: string, help: string, of: (stock: Stock) => number): void => {
    const made = new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        // A database that is gone takes its own gauges along and no others.
        const now = await stock().catch((error: unknown) => {
          onFault(error);
          return null;
        });
        if (now) made.set(of(now));
        else made.reset();
      },
    });
  };
  gauge('gpd_tenants', 'Tenants.', ({ tenants }) => tenants);
  gauge('gpd_ledger_entries', 'Entries of all logs together.', ({ ledgerEntries }) => ledgerEntries);
  gauge('gpd_webhooks_waiting', 'Deliveries that wait.', ({ webhooksWaiting }) => webhooksWaiting);
  gauge('gpd_webhooks_failed', 'Deliveries that were given up.', ({ webhooksFailed }) => webhooksFailed);
  gauge('gpd_database_bytes', 'Size of the database.', ({ databaseBytes }) => databaseBytes);
  gauge('gpd_database_wal_bytes', 'Size of the write-ahead log (SQLite).', ({ walBytes }) => walBytes);
}
