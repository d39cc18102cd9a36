import { randomBytes } from 'node:crypto';
import type { Router } from 'express';
import type { Config } from '../config.ts';
import { makeEmbed } from '../consent/embed.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';
import { DEFAULT_POLICY } from '../ingest/classify/policy.ts';
import type { IngestTenant } from '../ingest/ports.ts';
import type { MasterKey } from '../keys/master-key.ts';
import type { Clock } from '../lib/clock.ts';
import { hmacSha256 } from '../lib/hash.ts';
import { makeLogService } from '../log/service.ts';
import { contestWordsOf } from '../rights/contests/contest-text-of.ts';
import { makeDsarArchive } from '../rights/dsar/archive-files.ts';
import { openArchiveSigner } from '../rights/dsar/archive-signer-service.ts';
import { makeStaffExports } from '../rights/dsar/staff-export-service.ts';
import { makeHeldErasures } from '../rights/erase/held-service.ts';
import type { EraseService } from '../rights/erase/service.ts';
import { makeRightsApi, type RightsApi } from '../rights/service.ts';
import { VERSION } from '../version.ts';
import { consoleRoutes } from './console-router.ts';
import { makeJobs } from './jobs-service.ts';
import { makeRender } from './render.ts';
import { makeProvider } from './sign-in-service.ts';
import { loadStrings } from './strings-files.ts';

/** Hands the console its services. */

export interface ConsoleParts {
  readonly config: Config;
  /** Of the OIDC client; null when the console is not configured. */
  readonly clientSecret: string | null;
  readonly database: Database;
  readonly serverSecret: Uint8Array;
  readonly masterKey: () => MasterKey;
  readonly views: string;
  readonly origin: () => string;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly ingestTenantOf: (kid: string) => IngestTenant | undefined;
  readonly eraser: EraseService;
  readonly clock: Clock;
  readonly onFault: (requestId: string, error: unknown) => void;
  readonly onLoginFault: (error: unknown) => void;
  readonly onJobFault: (error: unknown) => void;
}

const bannerFiles = new URL('../../dist/banner/', import.meta.url);

export interface ConsoleApp {
  readonly router: Router;
  /** Ends the jobs that this process works at. */
  stop(): Promise<void>;
}

/** Signed by the installation's own key, which is made with the first export. */
function exportsOf(parts: ConsoleParts, api: RightsApi) {
  const { database, masterKey, ingestTenantOf, clock, origin } = parts;
  const archive = makeDsarArchive({
    policyOf: (kid) => ingestTenantOf(kid)?.policy ?? DEFAULT_POLICY,
    signer: () =>
      openArchiveSigner({ database, masterKey: masterKey(), clock, host: new URL(origin()).hostname }),
    version: VERSION,
  });
  return makeStaffExports({ database, api, archive, clock });
}

const keysOf = (secret: Uint8Array) => ({
  login: hmacSha256(secret, 'gpd/console-login/v1'),
  idToken: hmacSha256(secret, 'gpd/console-id-token/v1'),
  exports: hmacSha256(secret, 'gpd/console-export/v1'),
});

export function composeConsole(parts: ConsoleParts): ConsoleApp {
  const { config, database, tenantOf, ingestTenantOf, eraser, clock, origin, views } = parts;
  const { clientSecret, onFault, onLoginFault, onJobFault } = parts;
  const rights = makeRightsApi(parts);
  const t = loadStrings(views);
  const keys = keysOf(parts.serverSecret);
  // Named one by one: pages are handed what is derived from a secret, and no secret.
  const base = { config, database, tenantOf, clock, origin, random: randomBytes, keys, onLoginFault };
  const jobs = makeJobs({ ...base, onJobFault });
  const router = consoleRoutes({
    ...base,
    ingestTenantOf,
    eraser,
    views,
    onFault,
    t,
    render: makeRender({ ...base, t }),
    held: makeHeldErasures(parts),
    provider: makeProvider({ ...base, clientSecret }),
    words: contestWordsOf(tenantOf),
    contests: rights.contests,
    rights,
    exports: exportsOf(parts, rights),
    jobs,
    log: makeLogService({ database, signerOf: (kid) => tenantOf(kid)?.signer, clock }),
    embed: makeEmbed(bannerFiles),
  });
  return { router, stop: () => jobs.stop() };
}
