import { notifications } from '../consent/service.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';
import { enqueue } from '../webhooks/store.ts';

/** Webhook `log.fork`: a log said two things. It names logs and nobody. */
export function tellFork(database: Database, tenant: ConsentTenant, data: object, at: number): Promise<void> {
  const told = notifications(tenant, 'log.fork', data);
  const about = { kid: tenant.kid, principal: null, requestId: null, at };
  return database.transaction((tx) =>
    enqueue(
      tx,
      told.map((notification) => ({ ...notification, ...about })),
    ),
  );
}
