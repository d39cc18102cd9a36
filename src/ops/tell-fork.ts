import { tell } from '../consent/tell-service.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';

/** Webhook `log.fork`: a log said two things. It names logs and nobody. */
export function tellFork(database: Database, tenant: ConsentTenant, data: object, at: number): Promise<void> {
  return database.transaction((tx) => tell(tx, tenant, { event: 'log.fork', data, at }));
}
