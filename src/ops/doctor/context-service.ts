import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, readlinkSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Config, ConfigError, parseDescriptor, readSecretFile } from '../../config.ts';
import { stateMacs } from '../../consent/state-mac-store.ts';
import { listPolicies, type TermsOf } from '../../consent/terms-store.ts';
import { latestJobTime, readNewestTime } from '../../db/clock-rule-store.ts';
import type { Database } from '../../db/engine.ts';
import { listKids } from '../../db/meta-store.ts';
import { schemaState } from '../../db/migrate.ts';
import { probe } from '../../egress/gpd-client.ts';
import { fetchSigningKeys } from '../../egress/oidc-discovery.ts';
import { createMasterKey, parseMasterKey } from '../../keys/master-key.ts';
import { driverError, errorCode, succeeds, tryOr, Unavailable } from '../../lib/errors.ts';
import { createCheckpointBook } from '../../log/checkpoint-files.ts';
import { createApiKeyStore } from '../../tenants/api-key-store.ts';
import {
  databaseFileExists,
  explainFileError,
  openData,
  readServerSecret,
} from '../../tenants/installation-files.ts';
import { masterKeyPath } from '../../tenants/master-key-files.ts';
import { listSealKeys } from '../../tenants/secrets-store.ts';
import { createTenantStore } from '../../tenants/tenant-store.ts';
import { readServerState } from '../server-state-service.ts';
import { Skipped } from './finding.ts';
import { databaseVersion, missingTables, readPooling } from './inspect-store.ts';

/**
 * Reads the facts that several checks need: each once, when the first check asks for it. It writes nothing.
 */

export type DoctorContext = ReturnType<typeof createContext>;

export type FileFact = NonNullable<ReturnType<typeof readFileFact>>;

/** @returns null where the file is missing or cannot be examined; `mode` has the lower nine bits */
function readFileFact(location: string | null) {
  if (location === null) return null;
  return tryOr(() => {
    const { uid, mode, size } = statSync(location);
    const isOpen = parseDescriptor(location) !== null;
    const path = isOpen ? readlinkSync(location) : location;
    const readable = isOpen || succeeds(() => accessSync(path, constants.R_OK));
    return { path, uid, mode: mode & 0o777, size, readable };
  }, null);
}

function isHidden(path: string): boolean {
  try {
    statSync(path);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES';
  }
}

/** f_type of statfs(2). */
const TMPFS = new Set([0x01021994, 0x858458f6]);
const NETWORK = new Set([0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x5346414f, 0x0bd00bd0]);

const nearestDirectory = (path: string): string =>
  existsSync(path) ? path : nearestDirectory(dirname(path));

function readDisk({ data_dir: dataDir }: Config) {
  const { type, bsize, bavail, blocks, files, ffree } = statfsSync(nearestDirectory(dataDir));
  return {
    freeBytes: bavail * bsize,
    totalBytes: blocks * bsize,
    /** Share of the inodes that is free; null where the file system has none. */
    freeInodes: files > 0 ? ffree / files : null,
    kind: TMPFS.has(type) ? 'tmpfs' : NETWORK.has(type >>> 0) ? 'network' : 'local',
  };
}

function readKey(config: Config) {
  const path = masterKeyPath(config);
  const file = readFileFact(path);
  const content = file?.readable ? tryOr(() => readSecretFile(path), null) : null;
  const key = content && parseMasterKey(content);
  /** A folder that this user may not look into hides the file. */
  const denied = file === null ? isHidden(path) : !file.readable;
  return { path: file?.path ?? path, file, denied, key, master: key && createMasterKey(key, randomBytes) };
}

/** Uses the driver's code, because its message may quote a URL with a password. */
function describeFailure(config: Config, thrown: unknown) {
  const error = explainFileError(config, thrown);
  const code = errorCode(driverError(thrown));
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code))
    return {
      failure: `the database cannot be read: it is damaged (${code})`,
      remedy: 'Keep a copy of the data directory, then run gpd restore BACKUP.',
    };
  if (error instanceof ConfigError)
    return { failure: error.message, remedy: 'Do that, then run gpd doctor again.' };
  const remedy =
    config.database_url !== null
      ? 'Start PostgreSQL, and check GPD_DATABASE_URL.'
      : /^SQLITE_(FULL|IOERR)/.test(code)
        ? 'Make room, or look at the disk: host.space, docs/operate/disk-full.md.'
        : 'Run gpd as the user that owns the data directory.';
  if (error instanceof Unavailable) return { failure: error.message, remedy };
  return { failure: `the database cannot be read${code === '' ? '' : ` (${code})`}`, remedy };
}

/** Reads facts about a database that need none of its tables. */
async function inspectDatabase(config: Config, database: Database) {
  try {
    const startedAt = performance.now();
    const version = await databaseVersion(database);
    const answerMs = performance.now() - startedAt;
    const { pending, unknown } = await schemaState(database);
    const missing = await missingTables(database);
    return { database, version, answerMs, pending, unknown, missing, pooling: await readPooling(database) };
  } catch (error) {
    return describeFailure(config, error);
  }
}

/** Reads the rows of all tenants that several checks need. A damaged tenant does not hide the others. */
async function readTenants(database: Database) {
  const store = createTenantStore(database);
  const readTenant = async (kid: string) => {
    const tenant = await store.get(kid);
    return (
      tenant && {
        kid,
        settings: tenant.settings,
        sealKeys: await listSealKeys(database.read, kid),
        apiKeys: await createApiKeyStore(database).list(kid),
        purposes: await store.purposes(kid),
        policies: await listPolicies(database, kid),
      }
    );
  };
  const readable: NonNullable<Awaited<ReturnType<typeof readTenant>>>[] = [];
  const damaged: string[] = [];
  for (const kid of await listKids(database)) {
    try {
      const tenant = await readTenant(kid);
      if (tenant) readable.push(tenant);
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      damaged.push(kid);
    }
  }
  return { readable, damaged };
}

export type TenantRows = Awaited<ReturnType<typeof readTenants>>['readable'][number];

/** Reads the keys of the identity provider as the server does. @returns null if no issuer is set */
async function askProvider({ oidc_issuer: issuer }: Config) {
  if (issuer === null) return null;
  const sentAt = Date.now();
  const date = (await probe(`${issuer}/.well-known/openid-configuration`))?.date ?? null;
  return {
    /** Milliseconds that the provider's clock is ahead. A Date header has whole seconds, hence the 500. */
    skewMs: date === null ? null : date + 500 - (sentAt + Date.now()) / 2,
    /** The server's message if the keys cannot be used, or null. */
    problem: await fetchSigningKeys(issuer).then(
      () => null,
      (error: unknown) => (error instanceof Error ? error.message : 'it cannot be read'),
    ),
  };
}

function once<T>(make: () => T): () => T {
  let cached: { readonly value: T } | undefined;
  return () => {
    cached ??= { value: make() };
    return cached.value;
  };
}

interface ContextOptions {
  readonly version: string;
  readonly now: number;
  /** The running server, if it is not the one on this machine. */
  readonly url?: string | undefined;
}

/** @throws {Error} of openData if this user or this machine cannot open the database */
export async function openContext(config: Config, options: ContextOptions) {
  let absence: ReturnType<typeof describeFailure> | undefined;
  const isThere = (): boolean => {
    try {
      return config.database_url !== null || databaseFileExists(config);
    } catch (error) {
      absence = describeFailure(config, error);
      return false;
    }
  };
  const database = isThere() ? await openData(config) : null;
  const context = createContext(config, options, database, absence);
  // Measured first, because the checks run at the same time and would slow the answer down.
  await context.seen();
  return {
    ...context,
    async close(): Promise<void> {
      context.masterKey().key?.fill(0);
      await database?.close();
    },
  };
}

/** @param opened null: there is no database */
export function createContext(
  config: Config,
  { version, now, url }: ContextOptions,
  opened: Database | null,
  absence = {
    failure: `there is no database in ${config.data_dir}`,
    remedy: 'Run gpd init, gpd serve --setup or gpd restore BACKUP.',
  },
) {
  const masterKey = once(() => readKey(config));
  const inspect = once(async () => (opened ? inspectDatabase(config, opened) : absence));
  const reachable = once(async () => {
    const found = await inspect();
    if ('failure' in found) throw new Skipped('the database cannot be read');
    return found;
  });
  // The database, if its tables can be read. A pooler that splits transactions has no snapshot of a log.
  const data = once(async () => {
    const { database, missing, unknown, pooling } = await reachable();
    if (missing.length > 0 || unknown.length > 0) throw new Skipped('the schema is not that of this gpd');
    if (pooling?.transactions === false) throw new Skipped('the pooler splits transactions');
    return database;
  });
  return {
    config,
    version,
    now,
    nodeVersion: process.versions.node,
    /** Null on systems without user ids. */
    uid: process.getuid?.() ?? null,
    disk: once(() => readDisk(config)),
    file: readFileFact,
    masterKey,
    seen: inspect,
    reachable,
    data,
    /** The time that a server's jobs use: a clock that is more than a day ahead moves it only slowly. */
    jobTime: once(async () => {
      const newest = await readNewestTime(await data());
      return newest !== null && latestJobTime(now, newest) < now ? newest : now;
    }),
    /** Null if the master key does not open this database, which master-key.fits reports. */
    keys: once(async () => {
      const { master } = masterKey();
      if (!master) return null;
      const secret = await readServerSecret(await data(), master).catch(() => null);
      return secret && { master, secret, book: createCheckpointBook(config.data_dir, secret) };
    }),
    /** MAC functions by kid, which prove that gpd wrote a row, for each tenant whose keys open. */
    macs: once(async () => {
      const { master } = masterKey();
      return master ? stateMacs({ database: await data(), masterKey: master }) : new Map<string, TermsOf>();
    }),
    tenants: once(async () => readTenants(await data())),
    server: once(() => readServerState(config, url)),
    provider: once(() => askProvider(config)),
  };
}
