import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { type Config, loadConfig } from '../config.ts';
import type { Database } from '../db/engine.ts';
import { listKids } from '../db/meta-store.ts';
import type { InstallationAct } from '../lib/act.ts';
import { tryOr } from '../lib/errors.ts';
import type { SettingName } from '../schema/settings.ts';
import type { Services } from '../services.ts';
import { openStore, type Store } from '../tenants/installation-files.ts';
import { createOperatorLookup } from '../tenants/secrets-store.ts';
import type { Tenant } from '../tenants/tenant.ts';
import type { StoredTenant } from '../tenants/tenant-store.ts';
import { type CommandFailed, failed, io, misused, notFound, say } from './io-service.ts';

/** The parts of gpd that a command may use. Each is opened when the command first asks for it, because most need few. */
export type CommandContext = ReturnType<typeof createContext>;

export function configFor(flags: Partial<Record<SettingName, unknown>> = {}): Config {
  const { env, globalOptions } = io();
  return loadConfig({ environment: env, flags, configFile: globalOptions.config });
}

/** `userInfo` throws where the user has no name, as in a container that runs under a bare uid. */
export const accountName = (): string =>
  tryOr(() => userInfo().username, `uid ${process.getuid?.() ?? 'unknown'}`);

const UNITS = ['/usr/lib/systemd/system/gpd.service', '/etc/systemd/system/gpd.service'];

/** The command that starts the server: its unit, where one is installed for this data directory. */
export const startCommand = ({ data_dir }: Config): string =>
  data_dir === '/var/lib/gpd' && UNITS.some((unit) => existsSync(unit))
    ? 'systemctl enable --now gpd'
    : 'gpd serve';

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

async function onlyKid(database: Database, field: string): Promise<string> {
  const kids = await listKids(database);
  const [only] = kids;
  if (only === undefined) throw notFound('there is no tenant; `gpd tenants add` adds one');
  if (kids.length > 1) throw misused(`missing ${field}: name one of ${kids.join(', ')}`);
  return only;
}

/** Loads consent, people's rights and all tenants, for the commands that need more than the database. */
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

/** @throws {CommandFailed} that begins with `done`: the command's change is committed even when the log cannot be written */
async function recordEnded(store: Store, config: Config, done: string): Promise<void> {
  const [endings, erasureLog] = await Promise.all([
    import('../rights/erase/ended-store.ts'),
    import('../rights/erase/erasure-log-service.ts'),
  ]);
  try {
    await endings.recordEnded(erasureLog.erasureLogAccess(store, config), Date.now());
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw failed(
      `${done}, but erasures.log could not be written (${reason}), so a restore of an older backup would undo this: repeat the command, or start gpd serve, which retries every minute`,
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
    /** Opens the database and its keys. */
    open,
    services,
    /** @returns the tenant that was named, or else the only one @throws {CommandFailed} that lists them when there are several */
    resolveKid: async (kidArgument: string | undefined, field = 'argument <kid>'): Promise<string> =>
      kidArgument ?? onlyKid((await open()).database, field),
    /** @throws {CommandFailed} when there is no such tenant */
    tenant: async (kid: string): Promise<Tenant> => {
      const found = (await services()).tenants.find(kid);
      if (!found) throw noSuchTenant(kid);
      return found;
    },
    /** @returns the person at this terminal and the time, for the audit log @throws {CommandFailed} when there is no such tenant */
    by: async (kid: string) => ({ ...(await actor(kid)), at: Date.now() }),
    /** @returns the person at this terminal as one who reviews and erases @throws {CommandFailed} when there is no such tenant */
    operator: async (kid: string) => ({ kid, ...(await actor(kid)) }),
    /** @returns the person at this terminal, for an act that concerns every tenant */
    byAll: async (): Promise<InstallationAct> => ({
      actorOf: await createOperatorLookup(await open(), accountName()),
      at: Date.now(),
    }),
    /** Writes to erasures.log which keys or people the command has removed. @param done said where that fails */
    recordEnded: async (done: string): Promise<void> => recordEnded(await open(), readConfig(), done),
    /** Closes the database if the command opened it. */
    close: async (): Promise<void> => {
      const store = await opening?.catch(() => null);
      await store?.database.close();
    },
  };
}

/** Turns `act` into an action of commander: it gets a context first, which is closed however `act` ends. */
export const command =
  <Args extends unknown[]>(act: (context: CommandContext, ...args: Args) => Promise<void> | void) =>
  async (...args: Args): Promise<void> => {
    const context = createContext();
    try {
      await act(context, ...args);
    } finally {
      await context.close();
    }
  };

/** Formats the examples that end a help text. */
export const example = (...lines: readonly string[]): string =>
  ['', lines.length === 1 ? 'Example:' : 'Examples:', ...lines.map((line) => `  ${line}`)].join('\n');
