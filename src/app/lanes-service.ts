import { createNonceClaimer } from '../agents/store.ts';
import { createBotAuth } from '../agents/verify.ts';
import { createConsentApi } from '../consent/create-consent-service.ts';
import { createConsentLane } from '../consent/routes.ts';
import { followClock } from '../db/clock-rule-store.ts';
import { createConcurrencyLimit } from '../http/limiter.ts';
import type { IssueToken } from '../ingest/ingest.ts';
import { createIngest } from '../ingest/visit-service.ts';
import { SECOND } from '../lib/clock.ts';
import { eraseOwn } from '../rights/erase/erase-service.ts';
import { issueToken as createToken } from '../rights/me/transparency.ts';
import type { Services } from '../services.ts';
import type { OpenServer } from './server-service.ts';

/** The two routes that are answered before Express: bundles and consent checks. */

const createTokenIssuer =
  ({ serverSecret, random }: Services): IssueToken =>
  ({ session, origin, now, ...subject }) =>
    createToken(serverSecret, random, now, subject, { session, origin });

/** The lanes answer before Express is loaded; the routes share the rest. */
export type Lanes = Awaited<ReturnType<typeof createLanes>>;

export async function createLanes(server: OpenServer) {
  const { services, settings, metrics, monotonic, logFault, knowsOrigin } = server;
  const { config, database, clock, random, serverSecret, tenants, keyUse, rights } = services;
  const botAuth = createBotAuth(config, () => server.address.url, {
    findKey: server.agents.findKey,
    claimNonce: createNonceClaimer(database),
  });
  const consent = createConsentApi({
    database,
    clock,
    consent: services.consent,
    tenants,
    knowsOrigin,
    findApiKey: server.findApiKey,
    limits: server.limiters.consent,
    eraseOwn: eraseOwn(rights.eraser),
    keyUse,
    refresh: server.polling.refresh,
    botAuth,
    onDoubtFault: logFault('consent-doubt-lost'),
  });
  const issueToken = createTokenIssuer(services);
  // Before the first bundle is judged by it.
  const clockRule = await followClock(database, clock, config.max_clock_skew * SECOND);
  const ingest = createIngest({
    config,
    database,
    serverSecret,
    clock,
    monotonic,
    random,
    tenantOf: tenants.find,
    open: server.decryptor.open,
    limiter: server.limiters.ingest,
    knowsOrigin,
    isPublicHttps: server.address.url.startsWith('https:'),
    isHosting: settings.networks.isHosting,
    markNetwork: server.markerFor('gpd/network/v1'),
    requireClock: clockRule.requireClock,
    proveConsent: consent.proveConsent,
    grants: consent.grants,
    botAuth,
    issueToken,
    noteVisit: keyUse.noteVisit,
    linkedTo: rights.linkedTo,
    counted: (run) => metrics?.countIngest(run) ?? run,
    onFault: server.onFault,
  });
  const check = metrics?.countChecks(consent.check) ?? consent.check;
  const admission = createConcurrencyLimit();
  const checkLane = createConsentLane({ ...consent.authorization, check, admission });
  return {
    consent,
    ingest: ingest.lane,
    check: checkLane,
    idle: () => Promise.all([ingest.idle(), consent.idle()]),
    clockRule,
    issueToken,
  };
}
