import type { Command } from 'commander';
import { type ConsentService, makeConsentService } from '../app/consent-service.ts';
import type { ConsentTenant } from '../app/consent-tenant.ts';
import { makeDirectory } from '../app/directory.ts';
import type { Store } from '../app/store.ts';
import { makeConsentAppender } from '../storage/consent-append.ts';
import { makeConsentStateReader } from '../storage/consent-state.ts';
import { readSnapshot } from '../storage/snapshot.ts';
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
      service: makeConsentService({ database, reader, appender, clock: Date.now }),
    });
  });
}
