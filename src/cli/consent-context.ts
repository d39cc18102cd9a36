import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { makeDirectory } from '../app/directory.ts';
import { readSnapshot } from '../app/snapshot-store.ts';
import { makeConsentAppender } from '../consent/append-store.ts';
import { type ConsentService, makeConsentService } from '../consent/service.ts';
import { makeConsentStateReader } from '../consent/state-store.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Store } from '../tenants/installation-files.ts';
import { noSuchTenant, withStore } from './run.ts';

export interface ConsentContext {
  readonly store: Store;
  readonly tenant: ConsentTenant;
  readonly service: ConsentService;
}

/** The consent API's own operations on the database, for one tenant and one command. */
export function withConsent<T>(
  command: Command,
  kid: string,
  work: (context: ConsentContext) => Promise<T>,
): Promise<T> {
  return withStore(command, async (store) => {
    const { database } = store;
    const directory = makeDirectory(Date.now);
    directory.apply(await readSnapshot(database, -1), store.masterKey, true);
    const tenant = directory.consentTenant(kid);
    if (!tenant) throw noSuchTenant(kid);
    const reader = makeConsentStateReader(database);
    const appender = makeConsentAppender(database);
    return work({
      store,
      tenant,
      service: makeConsentService({ database, reader, appender, clock: Date.now, random: randomBytes }),
    });
  });
}
