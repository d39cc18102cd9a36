import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { NEEDS_NAME, relyingPartyOf } from '../attest/ceremony.ts';
import { createApiKey, type StaffRole } from '../auth/credentials.ts';
import { baseUrl, type Config, ConfigError, sqliteFile } from '../config.ts';
import { invite } from '../console/invite-service.ts';
import { hasStaff } from '../console/staff-store.ts';
import type { Database } from '../db/engine.ts';
import { serialise } from '../db/lock-files.ts';
import { ESCROW, readMeta } from '../db/meta-store.ts';
import { createExpressApp } from '../http/express-app.ts';
import { NO_ROUTES } from '../http/routes.ts';
import { createHttpServer } from '../http/server.ts';
import { hasDecisions } from '../ingest/decisions-store.ts';
import { SECOND } from '../lib/clock.ts';
import { isLoopback } from '../lib/ip.ts';
import { createApiKeyStore } from '../tenants/api-key-store.ts';
import { lastBackupAt } from './doctor/inspect-store.ts';
import { listen, readTls } from './listen-service.ts';
import { type NextSteps, nextPage, nextRoutes } from './next-routes.ts';
import type { AppOptions } from './running.ts';
import { createSetupLink } from './setup-link.ts';
import { setupRoutes } from './setup-routes.ts';
import { type Installed, install, isSetupUnfinished } from './setup-service.ts';

/**
 * `gpd serve --setup`: serves a page that creates the installation, then the server starts (contract-2
 * section 21).
 */

const DRAIN_MS = 2000;

/**
 * @throws {ConfigError} when the data directory has something else than an interrupted setup, or other
 * machines could reach the page
 */
function requireSetup(config: Config, socket: number | null): void {
  const { data_dir, host, base_url } = config;
  if (!isSetupUnfinished(config) && existsSync(data_dir) && readdirSync(data_dir).length > 0) {
    const next =
      config.database_url !== null || existsSync(sqliteFile(config))
        ? 'run `gpd serve` without --setup, or `gpd init` if an init was interrupted'
        : 'name an empty directory in GPD_DATA_DIR, or run `gpd init`';
    throw new ConfigError(`${data_dir} is not empty: ${next}`);
  }
  if (socket !== null || !isLoopback(host))
    throw new ConfigError('--setup listens on this machine alone: repeat with --host 127.0.0.1');
  if (base_url !== null && relyingPartyOf(base_url, '') === null)
    throw new ConfigError(`GPD_BASE_URL is ${base_url}: ${NEEDS_NAME}`);
}

export interface SetupOptions {
  /** The configuration file that the server reads. */
  readonly file: string;
  /** Descriptor of the unit's socket, with which --setup is refused. */
  readonly socket: number | null;
  readonly onFault: (requestId: string, error: unknown) => void;
  /** Called with the link once the page can be opened. */
  readonly onLink: (url: string) => void;
}

/** @returns the link; null if another person has the name */
async function inviteByPage(
  database: Database,
  { tenant: kid, baseUrl: origin }: Installed,
  member: { readonly name: string; readonly role: StaffRole },
): Promise<string | null> {
  const act = { role: 'system', ref: 'setup', at: Date.now() } as const;
  const invitation = await invite(database, { kid, ...member }, { origin, act, random: randomBytes });
  return invitation?.link ?? null;
}

const listSecretKeys = async (database: Database, { tenant: kid }: Installed) =>
  (await createApiKeyStore(database).list(kid)).filter(({ scope }) => scope === 'secret');

async function createSecretKey(database: Database, { tenant: kid }: Installed): Promise<string> {
  const at = Date.now();
  const { key, secret } = createApiKey({ kid, scope: 'secret', name: 'backend' }, at, randomBytes);
  await createApiKeyStore(database).insert(key, { role: 'system', ref: 'setup', at });
  return secret;
}

async function readSteps(database: Database, installed: Installed): Promise<NextSteps> {
  const [pages, keys, staff, escrow, backup] = await Promise.all([
    hasDecisions(database, installed.tenant),
    listSecretKeys(database, installed),
    hasStaff(database),
    readMeta(database, ESCROW),
    lastBackupAt(database),
  ]);
  const check = keys.some(({ lastUsedOn }) => lastUsedOn !== null);
  return { pages, check, staff, paper: escrow !== null, backup: backup !== null };
}

/** The form proposes the host that the browser shows, and a passkey needs a name. */
const setupAddress = (config: Config, port: number, token: string): string =>
  `${baseUrl({ ...config, host: 'localhost', base_url: null }, port)}/setup?token=${token}`;

/**
 * Serves only the setup until it is done.
 * @returns the configuration and routes to start the server with, at the same address
 */
export async function runSetup(config: Config, options: SetupOptions) {
  requireSetup(config, options.socket);
  const { file, onFault } = options;
  const { token, link } = createSetupLink(randomBytes, Date.now);
  const usesPasskeys = config.oidc_issuer === null;
  const csrf = randomBytes(32).toString('base64url');
  let onInstalled: (installed: Installed) => void = () => {};
  const installation = new Promise<Installed>((resolve) => {
    onInstalled = resolve;
  });
  const pages = createExpressApp({
    routers: [
      setupRoutes({
        link,
        csrf,
        baseUrl: config.base_url,
        install: (setup) => install(config, setup, file),
        onInstalled,
        nextPage: (installed) => nextPage({ installed, csrf, usesPasskeys }),
      }),
    ],
    pages: [],
    behind: [],
    views: fileURLToPath(new URL('../../views', import.meta.url)),
    onFault,
  });
  const http = createHttpServer({
    routes: NO_ROUTES,
    express: pages,
    clock: Date.now,
    random: randomBytes,
    knowsOrigin: () => false,
    trustedProxies: [],
    ja4Header: null,
    onUntrustedForwarded: () => {},
    onFault,
    https: false,
    tls: readTls(config),
    maxConnections: config.max_connections,
    answerTimeoutMs: config.answer_timeout * SECOND,
  });
  const port = await listen(http, config, null);
  options.onLink(setupAddress(config, port, token));
  const installed = await installation;
  await http.drain(DRAIN_MS);
  const routers: AppOptions['routers'] = ({ database }) =>
    Promise.resolve([
      nextRoutes({
        ...{ link, csrf, installed, usesPasskeys },
        readSteps: () => readSteps(database, installed),
        inviteMember: (name, role) => inviteByPage(database, installed, { name, role }),
        isKeyless: async () => (await listSecretKeys(database, installed)).length === 0,
        createSecretKey: () => createSecretKey(database, installed),
        inTurn: (work) => serialise('setup', work),
      }),
    ]);
  return { config: { ...config, port, base_url: installed.baseUrl }, routers };
}
