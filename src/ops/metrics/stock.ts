import { Gauge, type Registry } from 'prom-client';
import { SECOND } from '../../lib/clock.ts';
import type { Stock } from './stock-store.ts';

/** What lies in the database, read when somebody asks and not more often than every ten seconds. */

const KEEP_MS = 10 * SECOND;
/** Less than a scrape may take (Prometheus: 10 s). */
const LIMIT_MS = 5 * SECOND;

export interface StockDeps {
  readonly read: () => Promise<Stock>;
  readonly onFault: (error: unknown) => void;
  /** Milliseconds that no clock change touches. */
  readonly monotonic?: () => number;
  readonly limitMs?: number;
}

/** Null after the limit. */
async function within<T>(work: Promise<T>, ms: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null);
  });
  return Promise.race([work, over]).finally(() => clearTimeout(timer));
}

/** Null while the database cannot be read: told once a try, and never two tries at a time. */
function makeReader(deps: StockDeps): () => Promise<Stock | null> {
  const { read, onFault, monotonic = () => performance.now(), limitMs = LIMIT_MS } = deps;
  let known: Promise<Stock | null> | null = null;
  let readAt = 0;
  let isReading = false;
  const start = (): Promise<Stock | null> => {
    isReading = true;
    readAt = monotonic();
    const reading = read().finally(() => {
      isReading = false;
    });
    const told = within(reading, limitMs).then((stock) => {
      if (stock === null) throw new Error('the database did not answer in time');
      return stock;
    });
    return told.catch((error: unknown) => {
      onFault(error);
      if (!isReading) known = null;
      return null;
    });
  };
  return () => {
    if (known === null || (!isReading && monotonic() - readAt >= KEEP_MS)) known = start();
    return known;
  };
}

export function registerStock(registry: Registry, deps: StockDeps): void {
  const stock = makeReader(deps);
  const gauge = (name: string, help: string, of: (stock: Stock) => number): void => {
    const made = new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        const now = await stock();
        // A database that is gone takes its own gauges along and no others; `reset` would say 0.
        if (now) made.set(of(now));
        else made.remove();
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
