import type { Database } from '../db/db.ts';
import type { HotTransaction } from '../db/sql.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import { enqueue } from '../webhooks/store.ts';
import { notifications } from './service.ts';
import type { ConsentTenant } from './tenant.ts';

export interface Notice {
  readonly event: WebhookEvent;
  readonly data: object;
  /** Whose it is, by keyed reference, so that an erasure finds it. */
  readonly principal?: string;
  readonly at: number;
}

/** Puts a notice into the outbox, in the transaction of what it tells of. */
export function tell(tx: HotTransaction, tenant: ConsentTenant, notice: Notice): Promise<void> {
  const { event, data, principal = null, at } = notice;
  const about = { kid: tenant.kid, principal, requestId: null, at };
  return enqueue(
    tx,
    notifications(tenant, event, data).map((one) => ({ ...one, ...about })),
  );
}

/** What changed nothing else: a fork, a backup that failed. */
export function tellNow(database: Database, tenant: ConsentTenant, notice: Notice): Promise<void> {
  return database.transaction((tx) => tell(tx, tenant, notice));
}
