import type { RequestListener } from 'node:http';
import { fileURLToPath } from 'node:url';
import { type Response, type Router, static as serveStatic } from 'express';
import { attestRoutes } from '../attest/attest-routes.ts';
import { createAttestService } from '../attest/service.ts';
import { consentRoutes, embedRoutes } from '../consent/routes.ts';
import { createConsole } from '../console/console-routes.ts';
import { createExpressApp } from '../http/express-app.ts';
import { apiCors, exactRouter, registerAll, type ServedRoute, sending } from '../http/register.ts';
import { builtFiles, FIVE_MINUTES, sendBuilt } from '../http/reply.ts';
import { limitRoutes } from '../http/route-limits.ts';
import { type DecisionDeps, decisionRoutes } from '../ingest/decisions-routes.ts';
import { createRecordAlone } from '../ingest/store.ts';
import { SECOND } from '../lib/clock.ts';
import { ledgerRoutes } from '../log/routes.ts';
import { type HealthDeps, healthRoutes, type OpenApi, referenceRoutes } from '../ops/reference-routes.ts';
import { createCaseService } from '../rights/contests/case-by-key-service.ts';
import { readNotice } from '../rights/dsar/service.ts';
import { createExportPlaces, createSendExport } from '../rights/export-routes.ts';
import { meRoutes, myDataForms, myDataRoutes, type Sites } from '../rights/me/routes.ts';
import { createMeService } from '../rights/me/service.ts';
import { openPresented } from '../rights/me/transparency.ts';
import { createAuthenticator } from '../rights/oidc-service.ts';
import { createOutcomeReporter } from '../rights/outcomes-store.ts';
import { caseRoutes, outcomeRoutes, privacyRoutes } from '../rights/routes.ts';
import { ROUTES } from '../schema/routes.ts';
import type { Services } from '../services.ts';
import { pubkeyRoutes } from '../tenants/pubkey-routes.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { VERSION } from '../version.ts';
import type { Lanes } from './lanes-service.ts';
import type { OpenServer } from './server-service.ts';

/** Everything that Express answers: the API, the pages for people, the console and the documentation. */

type PagesHealth = Omit<HealthDeps, 'version'> & Pick<DecisionDeps, 'findDecision'>;

const assets = fileURLToPath(new URL('../../views/assets', import.meta.url));
const agentFiles = builtFiles(new URL('../../dist/agent/', import.meta.url));
const script = (name: string) => async (_call: unknown, response: Response) =>
  sendBuilt(response, await agentFiles(name), { type: 'text/javascript', cache: FIVE_MINUTES });

let openApi: Promise<OpenApi> | undefined;

/** Made when somebody asks for it, once. */
function loadOpenApi(): Promise<OpenApi> {
  openApi ??= import('../schema/openapi.ts').then(
    ({ openApiDocument }) => openApiDocument(VERSION) as unknown as OpenApi,
  );
  return openApi;
}

const sitesOf = ({ database, tenants }: Services): Sites => ({
  notice(kid) {
    const tenant = tenants.find(kid);
    return tenant ? readNotice(database, tenant) : Promise.resolve(null);
  },
  at(host) {
    const allTenants = tenants.all();
    const shown = ({ origins }: Tenant): boolean =>
      allTenants.length === 1 || [...origins].some((one) => new URL(one).host === host);
    return allTenants.filter(shown).map(({ kid }) => kid);
  },
});

/** Distinguishes identical devices by a passkey. */
function createAttest({ services, monotonic, log, metrics, markerFor }: OpenServer, lanes: Lanes) {
  const { database, serverSecret, clock } = services;
  const service = createAttestService({
    ...services,
    check: lanes.consent.check,
    issueToken: lanes.issueToken,
    openToken: (presented) => openPresented(serverSecret, clock(), presented),
    onOutcome(outcome, tenant) {
      metrics?.countAttestation(outcome);
      if (outcome === 'cloned') log.warn({ event: 'passkey-cloned', tenant });
    },
    record: createRecordAlone(database, monotonic),
  });
  return { service, markNetwork: markerFor('gpd/network/v1') };
}

/** The services that only the routes of people's rights need. */
/** Looks at /my-data at the same moment. */
const LOOKS_OF_TENANT = 8;

function createRightsPages({ services, knowsOrigin, markerFor, logFault }: OpenServer) {
  const { config, database, serverSecret, clock, random, tenants, rights } = services;
  const { api, contestTexts, eraser } = rights;
  const tenantOf = tenants.find;
  const { contests } = api;
  const markNetwork = markerFor('gpd/cases/v1');
  // A look at the page ends in milliseconds; it must not wait for somebody who reads an export slowly.
  const takePlace = createExportPlaces(LOOKS_OF_TENANT);
  const cases = createCaseService({
    database,
    serverSecret,
    tenantOf,
    random,
    contestTexts,
    contests,
    markNetwork,
  });
  return {
    knowsOrigin,
    authenticate: createAuthenticator(config, clock, logFault('oidc-failed')),
    /** The places of all routes that read what an export has. */
    takePlace,
    sendExport: createSendExport(createExportPlaces()),
    cases,
    reportOutcome: createOutcomeReporter(database, clock, config.max_clock_skew * SECOND),
    me: createMeService({
      database,
      serverSecret,
      tenantOf,
      clock,
      contestTexts,
      eraser,
      cases,
      kAnonymityFloor: config.k_anonymity_floor,
    }),
  };
}

/** A handler for each row of the table: with one too few or too many the server does not start. */
function handlersOf(
  server: OpenServer,
  lanes: Lanes,
  health: PagesHealth & DecisionDeps,
  rights: ReturnType<typeof createRightsPages>,
): readonly ServedRoute[] {
  const { services } = server;
  const { tenants } = services;
  const { consent } = lanes;
  return [
    ...healthRoutes({
      notReady: health.notReady,
      degraded: health.degraded,
      swept: health.swept,
      version: VERSION,
    }),
    ...pubkeyRoutes((kid) => tenants.find(kid)?.publicKey ?? null),
    sending(ROUTES.getAgentScript, script('agent.js')),
    sending(ROUTES.getClassicAgentScript, script('agent.classic.js')),
    sending(ROUTES.getAgentWorkerScript, script('agent-worker.js')),
    sending(ROUTES.getPasskeyScript, script('agent-passkey.js')),
    sending(ROUTES.getMyDataScript, script('my-data.js')),
    ...privacyRoutes(services.rights.api, rights.sendExport),
    ...outcomeRoutes(rights.reportOutcome),
    ...myDataRoutes(sitesOf(services)),
    ...meRoutes(rights.me, rights.sendExport),
    ...attestRoutes(createAttest(server, lanes)),
    ...caseRoutes(rights.cases),
    ...consentRoutes(consent.routes),
    ...embedRoutes(consent.embed),
    ...ledgerRoutes({
      ...services.log,
      isPublic: (kid) => tenants.find(kid)?.settings['ledger.public'] === true,
    }),
    ...decisionRoutes({ findDecision: health.findDecision, origin: health.origin }),
    ...referenceRoutes(loadOpenApi),
  ];
}

function mountConsole(
  { services, settings, limiters, views, onFault, logFault }: OpenServer,
  origin: () => string,
) {
  return createConsole({
    ...services,
    clientSecret: settings.clientSecret,
    signInLimits: limiters.signIn,
    views,
    origin,
    onFault,
    onLoginFault: logFault('console-login-failed'),
  });
}

/**
 * Everything that Express serves. Loaded while the server starts, not before: the hot lanes answer first.
 * @param extra further routers
 */
export function createPages(
  server: OpenServer,
  lanes: Lanes,
  health: PagesHealth,
  extra: readonly Router[],
): RequestListener {
  const { address } = server;
  const origin = (): string => new URL(address.url).origin;
  const rights = createRightsPages(server);
  const { authorization } = lanes.consent;
  const handlers = handlersOf(server, lanes, { ...health, origin }, rights);
  return createExpressApp({
    routers: [
      apiCors(rights.knowsOrigin),
      limitRoutes(server.limiters),
      myDataForms(rights),
      // Before the table: `/` of the demo leads to its tour.
      ...extra,
      registerAll({ authorization, authenticate: rights.authenticate }, handlers),
      exactRouter().use('/assets', serveStatic(assets, { index: false, redirect: false, maxAge: 0 })),
      mountConsole(server, origin),
    ],
    views: server.views,
    https: address.url.startsWith('https:'),
    onFault: server.onFault,
  }) as RequestListener;
}
