import { userInfo } from 'node:os';
import type { Config } from '../config.ts';
import type { InstallationAct } from '../lib/act.ts';
import { tryOr } from '../lib/functions.ts';
import type { Services } from '../services.ts';
import { openStore, type Store } from '../tenants/installation-files.ts';
import { operatorsOf } from '../tenants/operators-service.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { print, say } from './output.ts';
import { configFor, noSuchTenant } from './run.ts';

/** A container's user may have a number and no name. */
export const accountName = (): string =>
  tryOr(() => userInfo().username, `uid ${process.getuid?.() ?? 'unknown'}`);

/** The things a command works with; a part that it does not ask for is neither loaded nor read. */
export type CommandContext = ReturnType<typeof contextOf>;

/** Consent, people's rights and all tenants as they are now. Loaded when a command asks for it: most need the database alone. */
async function openServices(store: Store, config: Config): Promise<Services> {
  const { createServices, loadTenants } = await import('../services.ts');
  const services = await createServices(config, {
    store,
    // The process ends with its command.
    patienceMs: Number.POSITIVE_INFINITY,
    onErasureFault: () =>
      say('gpd: the erasure is recorded, but finishing it failed; `gpd erase resume` tries again'),
  });
  await loadTenants(services);
  return services;
}

function contextOf(store: Store, config: Config) {
  let opening: Promise<Services> | undefined;
  const services = (): Promise<Services> => {
    opening ??= openServices(store, config);
    return opening;
  };
  const actor = async (kid: string) => {
    const found = (await operatorsOf(store, accountName()))(kid);
    if (!found) throw noSuchTenant(kid);
    return { ref: found.ref, role: 'operator' as const };
  };
  return {
    config,
    store,
    database: store.database,
    services,
    print,
    /** @throws {CommandFailed} when there is no such tenant */
    tenant: async (kid: string): Promise<Tenant> => {
      const found = (await services()).tenants.find(kid);
      if (!found) throw noSuchTenant(kid);
      return found;
    },
    /** The person at this terminal, now, for the audit log. @throws {CommandFailed} when there is no such tenant */
    by: async (kid: string) => ({ ...(await actor(kid)), at: Date.now() }),
    /** The same as who reviews and erases. @throws {CommandFailed} when there is no such tenant */
    operator: async (kid: string) => ({ kid, ...(await actor(kid)) }),
    /** The same of what concerns every tenant. */
    byAll: async (): Promise<InstallationAct> => ({
      actorOf: await operatorsOf(store, accountName()),
      at: Date.now(),
    }),
  };
}

/** Opens the database for one command and closes it whatever happens. */
export async function withContext<T>(work: (context: CommandContext) => Promise<T>): Promise<T> {
  const config = configFor();
  const store = await openStore(config);
  try {
    return await work(contextOf(store, config));
  } finally {
    await store.database.close();
  }
}

/** A command whose whole work is on the database. */
export const command =
  <Given extends unknown[]>(act: (context: CommandContext, ...given: Given) => Promise<void>) =>
  (...given: Given): Promise<void> =>
    withContext((context) => act(context, ...given));
