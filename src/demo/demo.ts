import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApiKey } from '../auth/credentials.ts';
import { type Config, ConfigError } from '../config.ts';
import { addTenant } from '../ops/new-tenant-service.ts';
import { tally } from '../rights/tally-store.ts';
import { createApiKeyStore } from '../tenants/api-key-store.ts';
import { initialiseStore, openStore } from '../tenants/installation-files.ts';
import { createTenantStore } from '../tenants/tenant-store.ts';
import { DEMO_USERS, startDemoIdp } from './idp.ts';
import { type StartApp, seedPast } from './seed.ts';
import { tourRoutes } from './tour-routes.ts';
import { openedAt } from './visits.ts';

/** `gpd demo`: a throw-away installation with one tenant, two weeks of visits and a tour. Database, keys and server are the real ones. */

const DEMO_KID = 'demo-shop';

/** Gone with this process, however that ends: by a signal, a failed start or a fail-stop. */
function throwAwayDirectory(): string {
  let directory: string;
  try {
    directory = mkdtempSync(join(tmpdir(), 'gpd-demo-'));
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code;
    throw new ConfigError(`cannot make a directory in ${tmpdir()} (${why}): name another one in TMPDIR`);
  }
  process.once('exit', () => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }));
  return directory;
}

/** A free port, so that the tenant's origin is known before the server listens. */
async function freePort(host: string): Promise<number> {
  const probe = createServer().listen(0, host);
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  await once(probe.close(), 'close');
  return port;
}

/** @returns the keys of the shop: its backend holds the secret one, its page shows the publishable one */
async function createShop(config: Config, origins: readonly string[], now: number) {
  const store = await initialiseStore(config);
  try {
    const by = { role: 'system', ref: 'demo', at: now } as const;
    const about = { controller: 'Lanterne, a demonstration shop', contact: 'privacy@lanterne.example' };
    await addTenant(store, config, { kid: DEMO_KID, origins, ...about, now });
    await createTenantStore(store.database).saveSettings(
      DEMO_KID,
      (before) => ({ ...before, 'review.fourEyes': true }),
      by,
    );
    const addKey = async (scope: 'secret' | 'publishable', name: string): Promise<string> => {
      const { key, secret } = createApiKey({ kid: DEMO_KID, scope, name }, now, randomBytes);
      await createApiKeyStore(store.database).insert(key, by);
      return secret;
    };
    return {
      secret: await addKey('secret', 'demo shop backend'),
      publishable: await addKey('publishable', 'demo shop page'),
    };
  } finally {
    await store.database.close();
  }
}

export interface DemoNeeds {
  readonly start: StartApp;
  /** Runs `gpd consent verify`. @returns what it printed */
  readonly verifyLog: (kid: string, configFile: string) => Promise<string>;
}

/** At once what the server counts once a minute, for the overview of the console. */
async function countVisits(config: Config, now: number): Promise<void> {
  const { database } = await openStore(config);
  try {
    await tally(database, DEMO_KID, now);
  } finally {
    await database.close();
  }
}

/** @param base settings of the environment; the data directory and the database are always throw-away ones */
export async function prepareDemo(base: Config, { start, verifyLog }: DemoNeeds) {
  const directory = throwAwayDirectory();
  const port = base.port === 0 ? await freePort(base.host) : base.port;
  const origin = base.base_url ?? `http://localhost:${port}`;
  const idp = await startDemoIdp(DEMO_KID, origin);
  const secretFile = join(directory, 'console-client-secret');
  await writeFile(secretFile, idp.clientSecret, { mode: 0o600 });
  const configFile = join(directory, 'gpd.toml');
  await writeFile(configFile, `data_dir = ${JSON.stringify(directory)}\n`);
  const config: Config = {
    ...base,
    oidc_issuer: idp.issuer,
    oidc_audience: idp.audience,
    console_client_id: idp.clientId,
    console_client_secret_file: secretFile,
    data_dir: directory,
    database_url: null,
    master_key_file: null,
    credentials: {},
    port,
    base_url: origin,
  };
  const origins = [`http://localhost:${port}`, `http://127.0.0.1:${port}`];
  const now = Date.now();
  const keys = await createShop(config, origins, openedAt(now));
  const shop = { kid: DEMO_KID, origin, secret: keys.secret };
  await seedPast({ ...shop, origin: `http://localhost:${port}` }, { config, start, now });
  await countVisits(config, now);
  return {
    config,
    directory,
    users: DEMO_USERS,
    routers: ({ url }: { readonly url: () => string }) =>
      Promise.resolve([
        tourRoutes({
          shop,
          publishableKey: keys.publishable,
          origins,
          url,
          signInNext: (account) => idp.signInNext(account),
          verifyCommand: `gpd consent verify ${DEMO_KID} --config ${configFile}`,
          verifyLog: () => verifyLog(DEMO_KID, configFile),
        }),
      ]),
  };
}
