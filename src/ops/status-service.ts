import { type Config, databaseLocation } from '../config.ts';
import { lastMigration } from '../db/migrate.ts';
import { iso, isoTime } from '../lib/clock.ts';
import type { Store } from '../tenants/installation-files.ts';
import { readStock, readTraffic } from './metrics/stock-store.ts';
import { readServerState } from './server-state-service.ts';

/** Reads what `gpd status` and `gpd top` show of an installation and its server. */

export type ServerStatus = Awaited<ReturnType<typeof readStatus>>;

/** `gpd status`: asks the running server for its health, and counts what the database holds. */
export async function readStatus(
  store: Store,
  config: Config,
  options: { readonly version: string; readonly now: number; readonly url: string | undefined },
) {
  const { database } = store;
  const { version, now, url } = options;
  const [server, stock, traffic] = await Promise.all([
    readServerState(config, url),
    readStock(database, databaseLocation(config), now),
    readTraffic(database, now),
  ]);
  return {
    version,
    at: isoTime(now),
    server: {
      url: server.url,
      running: server.health !== null,
      problem: server.problem,
      ready: server.health !== null && server.notReady.length === 0,
      version: server.health?.version ?? null,
      notReady: server.notReady,
    },
    database: {
      kind: database.kind,
      bytes: stock.databaseBytes,
      walBytes: stock.walBytes,
      schema: await lastMigration(database),
      lastBackupAt: iso(stock.lastBackupAt),
    },
    tenants: stock.tenants,
    decisions: traffic,
    ledgerEntries: stock.ledgerEntries,
    webhooks: { waiting: stock.webhooksWaiting, failed: stock.webhooksFailed },
    overdueContests: stock.overdueContests,
    incompleteErasures: stock.incompleteErasures,
  };
}
