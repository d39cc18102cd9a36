import { userInfo } from 'node:os';
import { type Config, loadConfig } from '../config.ts';
import type { Database } from '../db/engine.ts';
import { listKids } from '../db/meta-store.ts';
import type { InstallationAct } from '../lib/act.ts';
import { tryOr } from '../lib/errors.ts';
import type { SettingName } from '../schema/settings.ts';
import type { Services } from '../services.ts';
import { openStore, type Store } from '../tenants/installation-files.ts';
import { createOperatorLookup } from '../tenants/secrets.ts';
import type { Tenant } from '../tenants/tenant.ts';
import type { StoredTenant } from '../tenants/tenant-store.ts';
import { type CommandFailed, failed, io, misused, notFound, say } from './io.ts';

/** The things that a command works with; each is loaded and opened when the command first asks for it: most need little. */
export type CommandContext = ReturnType<typeof createContext>;

export function configFor(flags: Partial<Record<SettingName, unknown>> = {}): Config {
  const { env, asked } = io();
  return loadConfig({ environment: env, flags, configFile: asked.config });
}

/** A container's user may have a number and no name. */
export const accountName = (): string =>
  tryOr(() => userInfo().username, `uid ${process.getuid?.() ?? 'unknown'}`);

export function noSuchTenant(kid: string): CommandFailed {
  return notFound(`no tenant ${kid}; \`gpd tenants list\` shows them`);
}

/** Refuses an unknown tenant: an empty list would look like a tenant without entries. */
export async function requireTenant(database: Database, kid: string): Promise<StoredTenant> {
  const { createTenantStore } = await import('../tenants/tenant-store.ts');
  const tenant = await createTenantStore(database).get(kid);
  if (tenant) return tenant;
  throw noSuchTenant(kid);
}

async function onlyKid(database: Database): Promise<string> {
  const kids = await listKids(database);
  const [only] = kids;
  if (only === undefined) throw notFound('there is no tenant; `gpd tenants add` adds one');
  if (kids.length > 1) throw misused(`missing argument <kid>: name one of ${kids.join(', ')}`);
  return only;
}

/** Consent, people's rights and all tenants as they are now; most commands need the database alone. */
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

/** @throws {CommandFailed} that says what is done all the same */
async function recordEnded(store: Store, config: Config, done: string): Promise<void> {
  const [ended, log] = await Promise.all([
    import('../rights/erase/ended.ts'),
    import('../rights/erase/erasure-log.ts'),
  ]);
  try {
    await ended.recordEnded(log.outsideOf(store, config), Date.now());
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw failed(
      `${done}, but erasures.log could not be written (${why}), so a restore of an older backup would undo this: repeat the command, or start gpd serve, which retries every minute`,
    );
  }
}

function createContext() {
  let config: Config | undefined;
  let opening: Promise<Store> | undefined;
  let loading: Promise<Services> | undefined;
  const readConfig = (): Config => {
    config ??= configFor();
    return config;
  };
  const open = (): Promise<Store> => {
    opening ??= openStore(readConfig());
    return opening;
  };
  const services = (): Promise<Services> => {
    loading ??= open().then((store) => openServices(store, readConfig()));
    return loading;
  };
  const actor = async (kid: string) => {
    const found = (await createOperatorLookup(await open(), accountName()))(kid);
    if (!found) throw noSuchTenant(kid);
    return { ref: found.ref, role: 'operator' as const };
  };
  return {
    get config() {
      return readConfig();
    },
    /** The database and its keys. */
    open,
    services,
    /** The tenant that was named, or else the only one. @throws {CommandFailed} that lists them when there are several */
    resolveKid: async (given: string | undefined): Promise<string> =>
      given ?? onlyKid((await open()).database),
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
      actorOf: await createOperatorLookup(await open(), accountName()),
      at: Date.now(),
    }),
    /** Writes to erasures.log what the command has ended; `done` is true all the same when that fails. */
    recordEnded: async (done: string): Promise<void> => recordEnded(await open(), readConfig(), done),
    /** Closes what was opened. */
    close: async (): Promise<void> => {
      const store = await opening?.catch(() => null);
      await store?.database.close();
    },
  };
}

/** An action of commander, which gets a context before what commander gives; what it opened is closed whatever happens. */
export const command =
  <Given extends unknown[]>(act: (context: CommandContext, ...given: Given) => Promise<void> | void) =>
  async (...given: Given): Promise<void> => {
    const context = createContext();
    try {
      await act(context, ...given);
    } finally {
      await context.close();
    }
  };

/** For the end of a help text. */
export const example = (...lines: readonly string[]): string =>
  ['', lines.length === 1 ? 'Example:' : 'Examples:', ...lines.map((line) => `  ${line}`)].join('\n');
