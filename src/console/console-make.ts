import { randomBytes } from 'node:crypto';
import type { Router } from 'express';
import type { Config } from '../config.ts';
import { makeEmbed } from '../consent/embed.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';
import { readBody } from '../http/body.ts';
import { cookieNames, cookieValues } from '../http/cookies.ts';
import { DEFAULT_POLICY } from '../ingest/classify/policy.ts';
import type { IngestTenant } from '../ingest/ports.ts';
import type { MasterKey } from '../keys/master-key.ts';
import type { Clock } from '../lib/clock.ts';
import { hmacSha256 } from '../lib/hash.ts';
import { poolRandom } from '../lib/random.ts';
import { contestWordsOf } from '../rights/contests/contest-text-of.ts';
import { makeDsarArchive } from '../rights/dsar/archive-files.ts';
import { openArchiveSigner } from '../rights/dsar/archive-signer-service.ts';
import { makeStaffExports } from '../rights/dsar/staff-export-service.ts';
import { makeHeldErasures } from '../rights/erase/held-service.ts';
import type { EraseService } from '../rights/erase/service.ts';
import { makeRightsApi, type RightsApi } from '../rights/service.ts';
import { VERSION } from '../version.ts';
import { makeAuditPort } from './audit-service.ts';
import { makeCasePort, makeQueuePort } from './cases-service.ts';
import { consoleRoutes } from './console-router.ts';
import { makeDraftPort } from './drafts-service.ts';
import { makeHoldService } from './holds-service.ts';
import { makeInsightPort } from './insight-service.ts';
import { makeJobs } from './jobs-service.ts';
import { makeLoginPort, makeSessionPort } from './sign-in-service.ts';
import { makeSubjectPort } from './subjects-service.ts';

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

export function composeConsole(parts: ConsoleParts): ConsoleApp {
  const { config, database, tenantOf, ingestTenantOf, clock, origin } = parts;
  const rights = makeRightsApi(parts);
  const drafts = makeDraftPort({ database, words: contestWordsOf(tenantOf), clock });
  const caseDeps = { database, contests: rights.contests, tenantOf, ingestTenantOf, clock, drafts };
  const signIn = {
    config,
    clientSecret: parts.clientSecret,
    database,
    tenantOf,
    clock,
    origin,
    onFault: parts.onLoginFault,
    tokenKey: hmacSha256(parts.serverSecret, 'gpd/console-id-token/v1'),
  };
  const keys = { exports: hmacSha256(parts.serverSecret, 'gpd/console-export/v1') };
  const jobs = makeJobs({ database, keys, clock, onFault: parts.onJobFault });
  const held = makeHeldErasures({ database, eraser: parts.eraser, tenantOf, clock });
  const holds = makeHoldService({ database, held, clock });
  const router = consoleRoutes({
    origin,
    loginKey: hmacSha256(parts.serverSecret, 'gpd/console-login/v1'),
    random: poolRandom(randomBytes),
    clock,
    http: { readBody, cookieValues, cookieNames },
    login: makeLoginPort(signIn),
    sessions: makeSessionPort(signIn),
    drafts,
    onFault: parts.onFault,
    views: parts.views,
    queue: makeQueuePort(caseDeps),
    cases: makeCasePort(caseDeps),
    subjects: makeSubjectPort({ ...parts, rights, exports: exportsOf(parts, rights), jobs, holds }),
    jobs,
    audit: makeAuditPort(database, clock),
    insight: makeInsightPort({
      database,
      tenantOf,
      jobs,
      embed: makeEmbed(bannerFiles),
      kAnonymityFloor: config.k_anonymity_floor,
      clock,
    }),
  });
  return { router, stop: () => jobs.stop() };
}
