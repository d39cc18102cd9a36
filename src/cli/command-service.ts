import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import type { ZodType } from 'zod';
import { type Config, loadConfig, readSecretFile } from '../config.ts';
import type { Database } from '../db/engine.ts';
import { listKids } from '../db/meta-store.ts';
import { NotRegularFile } from '../db/own-files.ts';
import type { InstallationAct } from '../lib/act.ts';
import { DAY, HOUR, MINUTE, SECOND } from '../lib/clock.ts';
import { tryOr } from '../lib/errors.ts';
import { parseUrl } from '../lib/text.ts';
import { kidSchema } from '../schema/bundle.ts';
import { explainIssue } from '../schema/explain-issue.ts';
import type { SettingName } from '../schema/settings.ts';
import type { Services } from '../services.ts';
import { openStore, type Store } from '../tenants/installation-files.ts';
import { createOperatorLookup } from '../tenants/secrets-store.ts';
import type { Tenant } from '../tenants/tenant.ts';
import type { StoredTenant } from '../tenants/tenant-store.ts';
import { type CommandFailed, failed, io, misused, notFound, say } from './io-service.ts';

/**
 * The parts of gpd that a command may use. Each is opened when the command first asks for it, because most
 * need few.
 */
export type CommandContext = ReturnType<typeof createContext>;

export function configFor(flags: Partial<Record<SettingName, unknown>> = {}): Config {
  const { env, globalOptions } = io();
  return loadConfig({ environment: env, flags, configFile: globalOptions.config });
}

/** `userInfo` throws where the user has no name, as in a container that runs under a bare uid. */
export const accountName = (): string =>
  tryOr(() => userInfo().username, `uid ${process.getuid?.() ?? 'unknown'}`);

const UNIT_FILES = ['/usr/lib/systemd/system/gpd.service', '/etc/systemd/system/gpd.service'];

/** The command that starts the server: its unit, where one is installed for this data directory. */
export const startCommand = ({ data_dir }: Config): string =>
  data_dir === '/var/lib/gpd' && UNIT_FILES.some((unit) => existsSync(unit))
    ? 'systemctl enable --now gpd'
    : 'gpd serve';

export function noSuchTenant(kid: string): CommandFailed {
  return notFound(`no tenant "${kid}"; gpd tenants list`);
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

/**
 * @throws {CommandFailed} that begins with `done`: the command's change is committed even when the log cannot
 * be written
 */
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
  const resolveKid = async (kidArgument: string | undefined, field = 'argument <kid>'): Promise<string> =>
    kidArgument ?? onlyKid((await open()).database, field);
  const actor = async (kid: string) => {
    const found = (await createOperatorLookup(await open(), accountName()))(kid);
    if (!found) throw noSuchTenant(kid);
    return { ref: found.ref, role: 'operator' as const };
  };
  return {
    get config() {
      return readConfig();
    },
    open,
    services,
    /** The named or only tenant. @throws {CommandFailed} that lists them if there are several */
    resolveKid,
    /** @throws {CommandFailed} when there is no such tenant */
    tenant: async (kid: string): Promise<Tenant> => {
      const found = (await services()).tenants.find(kid);
      if (!found) throw noSuchTenant(kid);
      return found;
    },
    /** Opens the database, with the named or only tenant. @throws {CommandFailed} for an unknown one */
    stored: async (kidArgument: string | undefined, field?: string) => {
      const store = await open();
      const kid = await resolveKid(kidArgument, field);
      return { ...store, kid, tenant: await requireTenant(store.database, kid) };
    },
    /** The person at this terminal and the time, for the audit log. @throws {CommandFailed} */
    by: async (kid: string) => ({ ...(await actor(kid)), at: Date.now() }),
    /** The person at this terminal as a reviewer. @throws {CommandFailed} for an unknown tenant */
    operator: async (kid: string) => ({ kid, ...(await actor(kid)) }),
    /** @returns the person at this terminal, for an act that concerns every tenant */
    byAll: async (): Promise<InstallationAct> => ({
      actorOf: await createOperatorLookup(await open(), accountName()),
      at: Date.now(),
    }),
    /** Writes to erasures.log which keys or people the command removed. An error begins with `done`. */
    recordEnded: async (done: string): Promise<void> => recordEnded(await open(), readConfig(), done),
    close: async (): Promise<void> => {
      const store = await opening?.catch(() => null);
      await store?.database.close();
    },
  };
}

/** A command's act. It gets a context first, and then what commander gives to an action. */
type Act<Args extends unknown[]> = (context: CommandContext, ...args: Args) => Promise<void> | void;

/** Turns `act` into an action of commander. The context is closed however `act` ends. */
export const command =
  <Args extends unknown[]>(act: Act<Args>) =>
  async (...args: Args): Promise<void> => {
    const context = createContext();
    try {
      await act(context, ...args);
    } finally {
      await context.close();
    }
  };

const ONLY_KID_HELP = 'the tenant; may be left out while there is only one';

/**
 * Adds a command to `parent`.
 * @param usage its name, and `<kid>` or `[kid]` behind it if its first argument is a tenant
 */
export function addCommand<Args extends unknown[]>(
  parent: Command,
  usage: string,
  act: Act<Args>,
  help: { readonly about: string; readonly example: string },
): Command {
  const added = parent.command(usage).description(help.about).addHelpText('after', example(help.example));
  for (const kid of added.registeredArguments) {
    kid.description = kid.required ? 'the tenant' : ONLY_KID_HELP;
    kid.argParser(checkKid);
  }
  return added.action(command(act));
}

/** Formats the example that ends a help text. */
export const example = (line: string): string => `\nExample:\n  ${line}`;

/** Options of a command: those with a value, and those without. */
export type Flags<Text extends string, Bare extends string = never> = { readonly [Name in Text]?: string } & {
  readonly [Name in Bare]?: boolean;
};

/** @throws {CommandFailed} `usage`, which begins with `prefix` */
export function checkValue<T>(schema: ZodType<T>, value: unknown, prefix: string): T {
  const { data, error } = schema.safeParse(value, { error: explainIssue });
  if (error) throw misused(`${prefix}${error.issues[0]?.message}`);
  return data;
}

/** Checks a value with parts. @throws {CommandFailed} `usage`, which also names the part that is invalid */
export function checkObject<T>(schema: ZodType<T>, value: unknown, prefix = ''): T {
  const { data, error } = schema.safeParse(value, { error: explainIssue });
  if (error) throw misused(`${prefix}${error.issues[0]?.path.join('.')}: ${error.issues[0]?.message}`);
  return data;
}

/**
 * @param name of the option or the argument
 * @param what says which numbers are right
 * @throws {CommandFailed} `usage`
 */
export function checkInteger(
  name: string,
  text: string | number,
  [min, max]: readonly [number, number],
  expected: string,
): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= min && number <= max) return number;
  throw misused(`${name} ${text}: must be ${expected}`);
}

const UNITS: Readonly<Record<string, number>> = { s: SECOND, m: MINUTE, h: HOUR, d: DAY };

/** Parses `30s`, `15m`, `12h`, `7d` (also `0d`) into milliseconds, or returns null. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,6})([smhd])$/.exec(text);
  const unit = match?.[2] === undefined ? undefined : UNITS[match[2]];
  return match && unit !== undefined ? Number(match[1]) * unit : null;
}

/** @param name of the option @returns `text`, typed as one of these words @throws {CommandFailed} `usage` */
export function checkOneOf<Word extends string>(
  name: string,
  text: string,
  words: readonly Word[],
  expected = `one of ${words.join(', ')}`,
): Word {
  const found = words.find((word) => word === text);
  if (found !== undefined) return found;
  throw misused(`${name} ${text}: must be ${expected}`);
}

/** @throws {CommandFailed} `usage` where it is no URL */
export function checkServer(url: string | undefined): string | undefined {
  if (url === undefined || parseUrl(url) !== null) return url;
  throw misused(`--url ${url}: must be the address of a server`);
}

export const checkKid = (text: string): string =>
  checkValue(kidSchema, text, `tenant ${JSON.stringify(text)}: `);

/** Arguments and options that several commands take. */
export const ONLY_KID = ['[kid]', ONLY_KID_HELP, checkKid] as const;
export const ONE_KID = ['[kid]', 'only this tenant', checkKid] as const;
export const TENANT = ['--tenant <kid>', ONLY_KID_HELP, checkKid] as const;
export const YES = ['--yes', 'do not ask'] as const;
export const DRY_RUN = ['--dry-run', 'show what would change; change nothing'] as const;

/** Commander calls it for each value of an option that may be repeated. */
export const collect = (value: string, previous: readonly string[]): string[] => [...previous, value];

/**
 * @returns null where the file cannot be read
 * @throws {CommandFailed} `usage` for a FIFO, a device or a folder
 */
export function readGivenFile(file: string): Buffer | null {
  try {
    return readSecretFile(file);
  } catch (error) {
    if (error instanceof NotRegularFile) throw misused(error.message);
    return null;
  }
}

/** @throws {CommandFailed} `usage` where the file is missing or is not JSON */
export function readJsonFile(file: string): unknown {
  const text = readGivenFile(file)?.toString('utf8') ?? '';
  const value = tryOr(() => JSON.parse(text) as unknown, undefined);
  if (value === undefined) throw misused(`${file} cannot be read as JSON`);
  return value;
}
