import { randomBytes } from 'node:crypto';
import { makeDirectory } from '../app/directory.ts';
import { readSnapshot } from '../app/snapshot-store.ts';
import type { Config } from '../config.ts';
import { makeConsent } from '../consent/consent-make.ts';
import { notify } from '../notify/notify.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import type { Store } from '../tenants/installation-files.ts';
import { noSuchTenant, withStore } from './run.ts';

/** All tenants as they are now, for one command. */
export async function readDirectory({ database, masterKey }: Store) {
  const directory = makeDirectory(Date.now);
  directory.apply(await readSnapshot(database, -1), masterKey, true);
  return directory;
}

/** All tenants of this installation that asked for the event. */
export async function notifyWebhooks(store: Store, event: WebhookEvent, data: object): Promise<void> {
  const tenants = (await readDirectory(store)).consentTenants();
  await store.database.transaction(async (tx) => {
    for (const tenant of tenants) await notify(tx, tenant, { event, data, at: Date.now() });
  });
}

async function consentOf(store: Store, kid: string) {
  const tenant = (await readDirectory(store)).consentTenant(kid);
  if (!tenant) throw noSuchTenant(kid);
  const { service } = makeConsent({ database: store.database, clock: Date.now, random: randomBytes });
  return { store, tenant, service };
}

type Consent = Awaited<ReturnType<typeof consentOf>>;

/** The consent API's own operations on the database, for one tenant and one command. */
export function withConsent<T>(kid: string, work: (consent: Consent, config: Config) => Promise<T>) {
  return withStore(async (store, config) => work(await consentOf(store, kid), config));
}
