import { writeAct } from '../audit/audit-store.ts';
import type { Database, Reader } from '../db/engine.ts';
import { bumpTenant } from '../db/meta-store.ts';
import { requireNone, toColumns } from '../db/sql.ts';
import type { Act } from '../lib/act.ts';
import { hmacSha256 } from '../lib/crypto.ts';
import { rowToWebhook, type Webhook, type WebhookRow } from '../tenants/tenant-store.ts';

/** Stores the webhooks of tenants and signs deliveries (Standard Webhooks). */

export async function listWebhooks(database: Reader, kid?: string): Promise<readonly Webhook[]> {
  const query = database.read<WebhookRow>('webhooks').orderBy(['kid', 'created_at']);
  const rows = await (kid === undefined ? query : query.where({ kid }));
  return rows.map(rowToWebhook);
}

/** @returns false: no such tenant */
export function insertWebhook(database: Database, webhook: Webhook, by: Act): Promise<boolean> {
  const { kid, id, url, events } = webhook;
  return database.transaction(async (tx) => {
    if (!(await bumpTenant(tx, kid))) return false;
    await tx('webhooks').insert(toColumns({ ...webhook, events: JSON.stringify(events) }));
    // The path may contain a secret of the target.
    await writeAct(tx, kid, by, 'webhook.added', { id, host: new URL(url).host, events: [...events] });
    return true;
  });
}

/** Deletes a webhook with its waiting events. @returns false: no such webhook */
export function removeWebhook(database: Database, kid: string, id: string, by: Act): Promise<boolean> {
  return database.transaction(async (tx) => {
    await bumpTenant(tx, kid);
    const target = tx('webhooks').where({ kid, id });
    await tx('webhook_outbox').where({ kid, webhook: id }).delete();
    const removed = ((await target.clone().delete()) as unknown as number) === 1;
    await requireNone(tx, target, `webhook ${id} is not removed`);
    if (removed) await writeAct(tx, kid, by, 'webhook.removed', { id });
    return removed;
  });
}

const SECRET_PREFIX = 'whsec_';

export function formatWebhookSecret(key: Uint8Array): string {
  return SECRET_PREFIX + Buffer.from(key).toString('base64');
}

/**
 * webhook-id, webhook-timestamp and webhook-signature: `v1,` + base64 HMAC-SHA-256 over `id.timestamp.body`.
 * @param timestamp epoch seconds
 */
export function webhookHeaders(key: Uint8Array, id: string, timestamp: number, body: string) {
  const signature = hmacSha256(key, `${id}.${timestamp}.${body}`).toString('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${signature}`,
  };
}
