import { randomBytes } from 'node:crypto';
import type { Config } from '../config.ts';
import { makeConsent } from '../consent/consent-make.ts';
import type { ConsentService } from '../consent/service.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Store } from '../tenants/installation-files.ts';
import { readDirectory } from './directory.ts';
import { noSuchTenant, withStore } from './run.ts';

interface ConsentContext {
  readonly store: Store;
  readonly config: Config;
  readonly tenant: ConsentTenant;
  readonly service: ConsentService;
}

/** The consent API's own operations on the database, for one tenant and one command. */
export function withConsent<T>(kid: string, work: (context: ConsentContext) => Promise<T>): Promise<T> {
  return withStore(async (store, config) => {
    const directory = await readDirectory(store);
    const tenant = directory.consentTenant(kid);
    if (!tenant) throw noSuchTenant(kid);
    const { service } = makeConsent({ database: store.database, clock: Date.now, random: randomBytes });
    return work({ store, config, tenant, service });
  });
}
