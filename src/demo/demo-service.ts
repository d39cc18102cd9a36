import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApiKey } from '../auth/credentials.ts';
import { baseUrl, type Config, ConfigError } from '../config.ts';
import type { HttpRequest } from '../http/request.ts';
import { addTenant } from '../ops/new-tenant-service.ts';
import { tally } from '../rights/tally-store.ts';
import { createApiKeyStore } from '../tenants/api-key-store.ts';
import { initialiseStore, openStore } from '../tenants/installation-files.ts';
import { createTenantStore } from '../tenants/tenant-store.ts';
import { builderRoutes } from './builder-routes.ts';
import { createFilling } from './filling.ts';
import { DEMO_USERS, startDemoIdp } from './idp-service.ts';
import type { Mailbox } from './mailbox.ts';
import { writePast } from './past-store.ts';
import { seedPast } from './seed-service.ts';
import { tourRoutes } from './tour-routes.ts';
import { openedAt } from './visits.ts';

/**
 * Prepares `gpd demo`: a temporary installation with one tenant, two weeks of visits and a tour. Database,
 * keys and server are real.
 */

const DEMO_KID = 'demo-shop';

/** The directory is deleted when this process ends, also by a signal, a failed start or a fail-stop. */
function createTemporaryDirectory(): string {
  let directory: string;
  try {
    directory = mkdtempSync(join(tmpdir(), 'gpd-demo-'));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw new ConfigError(`cannot make a directory in ${tmpdir()} (${code}): name another one in TMPDIR`);
  }
  process.once('exit', () => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }));
  return directory;
}

/** The port must be known before the server listens, because the tenant's origin contains it. */
async function findFreePort(host: string): Promise<number> {
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
    const notice = { controller: 'Lanterne (demo)', contact: 'privacy@lanterne.example' };
    await addTenant(store, config, { kid: DEMO_KID, origins, ...notice, now });
    await createTenantStore(store.database).saveSettings(
      DEMO_KID,
      (before) => ({
        ...before,
        'banner.siteName': 'Lanterne',
        'review.fourEyes': true,
        'notify.email': ['dora@lanterne.example'],
      }),
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
  readonly mailbox: Mailbox;
  /** Decisions to store over the past two weeks; null: a day of them, and only counts before it. */
  readonly visits: number | null;
  /** Runs `gpd consent verify`. @returns what it printed */
  readonly verifyLog: (kid: string, configFile: string) => Promise<string>;
}

/** @param base settings of the environment; the data directory and the database are always temporary */
async function configureDemo(base: Config) {
  const directory = createTemporaryDirectory();
  const port = base.port === 0 ? await findFreePort(base.host) : base.port;
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
    // Never connected to: the mailbox has the mails.
    smtp_url: 'smtp://localhost',
    smtp_from: null,
    credentials: {},
    port,
    base_url: origin,
  };
  return { config, configFile, origin, idp };
}

export async function prepareDemo(base: Config, { mailbox, visits, verifyLog }: DemoNeeds) {
  const { config, configFile, origin, idp } = await configureDemo(base);
  const { data_dir: directory, port } = config;
  const origins = [`http://localhost:${port}`, `http://127.0.0.1:${port}`];
  const now = Date.now();
  const keys = await createShop(config, origins, openedAt(now));
  const shop = { kid: DEMO_KID, origin, secret: keys.secret };
  const filling = createFilling(openedAt(now), randomBytes(16).toString('base64url'), Date.now);
  return {
    config,
    directory,
    users: DEMO_USERS,
    clock: () => filling.clock(),
    admit: (request: HttpRequest) => filling.admit(request),
    /** Writes the past, through the running server where it can, and then sets the server's clock right. */
    async fill(): Promise<void> {
      const { database } = await openStore(config);
      try {
        // Before the server's clock reaches these hours, because it anchors them once they are over.
        await writePast(database, DEMO_KID, now, visits);
        const url = baseUrl({ ...config, base_url: null });
        await seedPast(
          { ...shop, origin: `http://localhost:${port}` },
          (account, at) => idp.token(account, at),
          { filling, url, now },
        );
        // The server counts once a minute, and the overview needs the counts now.
        await tally(database, DEMO_KID, now);
      } finally {
        await database.close();
      }
      filling.finish();
    },
    routers: ({ url }: { readonly url: () => string }) =>
      Promise.resolve([
        builderRoutes(config.wba_tags),
        tourRoutes({
          shop,
          publishableKey: keys.publishable,
          origins,
          url,
          mails: mailbox.list,
          signInNext: (account) => idp.signInNext(account),
          verifyCommand: `gpd consent verify ${DEMO_KID} --config ${configFile}`,
          verifyLog: () => verifyLog(DEMO_KID, configFile),
        }),
      ]),
  };
}
