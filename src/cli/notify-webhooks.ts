import { tellNow } from '../consent/tell-service.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import type { Store } from '../tenants/installation-files.ts';
import { makeTenantStore } from '../tenants/tenant-store.ts';
import { readDirectory } from './directory.ts';

/** All tenants of this installation that asked for the event. */
export async function notifyWebhooks(store: Store, event: WebhookEvent, data: object): Promise<void> {
  const directory = await readDirectory(store);
  for (const kid of await makeTenantStore(store.database).kids()) {
    const tenant = directory.consentTenant(kid);
    if (tenant) await tellNow(store.database, tenant, { event, data, at: Date.now() });
  }
}
