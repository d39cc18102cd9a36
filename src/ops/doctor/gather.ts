import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type Config, sqliteFile } from '../../config.ts';
import { stateMacs } from '../../consent/state-mac-service.ts';
import { driverError, errorCode } from '../../db/availability.ts';
import type { Database } from '../../db/db.ts';
import { makeMasterKey } from '../../keys/master-key.ts';
import { SECOND } from '../../lib/clock.ts';
import { Unavailable } from '../../lib/errors.ts';
import { makeCheckpointBook } from '../../log/checkpoint-files.ts';
import { erasureLogKey } from '../../rights/erase/erasure-log.ts';
import { openData } from '../../tenants/data-lock-files.ts';
import { readServerSecret } from '../../tenants/installation-files.ts';
import { readServerState } from '../server-state.ts';
import { gatherDatabase, type Tried, tryMasterKey, UNTRIED } from './gather-database.ts';
import { fileFact, gatherData, gatherHost, gatherMasterKey } from './gather-files.ts';
import {
  gatherAgents,
  gatherMmdb,
  gatherOidc,
  gatherRelay,
  gatherTls,
  gatherWebhooks,
} from './gather-outside.ts';
import { type DoctorKeys, gatherTenants } from './gather-tenants.ts';

export type DatabaseFacts = Awaited<ReturnType<typeof gatherDatabase>>;
/** All that the checks judge: gathered once, by reading alone. Null: it is not there, or nobody could look. */
export type Facts = Awaited<ReturnType<typeof gatherFacts>>;

interface Stored extends Awaited<ReturnType<typeof gatherTenants>> {
  /** `failure`: it cannot be read, for this reason. */
  readonly database: DatabaseFacts | { readonly failure: string };
  readonly tried: Tried;
  readonly agents: Awaited<ReturnType<typeof gatherAgents>>;
  readonly webhooks: Awaited<ReturnType<typeof gatherWebhooks>>;
}

const NOTHING = { tenants: [], damagedTenants: [], agents: [], webhooks: [], tried: UNTRIED };

/** A driver's code says what is wrong; its message may quote an address with a password. */
function reasonOf(error: unknown): string {
  if (error instanceof Unavailable) return error.message;
  const code = errorCode(driverError(error));
  return code === '' ? 'the database cannot be read' : `the database cannot be read (${code})`;
}

interface Opened extends DoctorKeys {
  readonly secret: Buffer;
}

/** Null: this key does not open the database, which is another finding. */
async function openKeys(database: Database, key: Buffer | null, dataDir: string): Promise<Opened | null> {
  if (!key) return null;
  const masterKey = makeMasterKey(key, randomBytes);
  const secret = await readServerSecret(database, masterKey).catch(() => null);
  return secret && { masterKey, secret, book: makeCheckpointBook(dataDir, secret) };
}

async function readStored(
  database: Database,
  key: Buffer | null,
  { data_dir: dataDir, max_clock_skew: skew }: Config,
  now: number,
): Promise<Stored> {
  const keys = await openKeys(database, key, dataDir);
  // Without the key nothing can be said of the lines of erasures.log.
  const outside = keys && { database, dataDir, logKey: erasureLogKey(keys.secret) };
  const facts = await gatherDatabase(database, { now, skewMs: skew * SECOND }, outside);
  const known = facts.missingTables.length === 0 && facts.unknownMigrations.length === 0;
  // Through a pooler that takes transactions apart no log can be read at one moment.
  const usable = known && facts.pooling?.transactions !== false;
  if (!usable) return { ...NOTHING, database: facts };
  const macs = key ? await stateMacs({ database, masterKey: makeMasterKey(key, randomBytes) }) : new Map();
  return {
    database: facts,
    tried: await tryMasterKey(database, key),
    ...(await gatherTenants(database, facts.jobTime, { macs, keys })),
    agents: await gatherAgents(database, now),
    webhooks: await gatherWebhooks(database),
  };
}

async function gatherStored(config: Config, key: Buffer | null, now: number): Promise<Stored> {
  if (config.database_url === null && !existsSync(sqliteFile(config))) {
    return { ...NOTHING, database: { failure: `there is no database in ${config.data_dir}` } };
  }
  const database = await openData(config);
  try {
    return await readStored(database, key, config, now);
  } catch (error) {
    return { ...NOTHING, database: { failure: reasonOf(error) } };
  } finally {
    key?.fill(0);
    await database.close();
  }
}

/** Reads all that the checks judge; migrates nothing and writes nothing. */
export async function gatherFacts(
  config: Config,
  options: { readonly version: string; readonly now: number; readonly url?: string | undefined },
) {
  const { version, now, url } = options;
  const { key, facts } = gatherMasterKey(config);
  const [{ tried, ...stored }, oidc, relay, server, mmdb] = await Promise.all([
    gatherStored(config, key, now),
    gatherOidc(config),
    gatherRelay(config),
    readServerState(config, url),
    gatherMmdb(config),
  ]);
  return {
    now,
    version,
    config,
    host: gatherHost(config),
    data: gatherData(config),
    masterKey: { ...facts, ...tried },
    tls: gatherTls(config),
    consoleSecret: fileFact(config.console_client_secret_file),
    oidc,
    relay,
    server,
    mmdb,
    ...stored,
  };
}
