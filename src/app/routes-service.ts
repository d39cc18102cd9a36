import { fileURLToPath } from 'node:url';
import { static as serveStatic } from 'express';
import { createDoor } from '../agents/door-service.ts';
import { agentRoutes } from '../agents/routes.ts';
import { createNonceClaimer } from '../agents/store.ts';
import { createBotAuth } from '../agents/verify.ts';
import { attestRoutes } from '../attest/attest-routes.ts';
import { createAttestService } from '../attest/service.ts';
import { operatorActor } from '../audit/audit-store.ts';
import { embedRoutes } from '../consent/banner-routes.ts';
import { createConsentApi } from '../consent/create-consent-service.ts';
import { consentRoutes } from '../consent/routes.ts';
import { createConsole } from '../console/console-routes.ts';
import type { ClockRule } from '../db/clock-rule-store.ts';
import { exactRouter } from '../http/express-app.ts';
import { builtFiles, FIVE_MINUTES, FOREVER, sendBuilt } from '../http/reply.ts';
import { type PageRoute, page, requireWholeTable, type ServedRoute } from '../http/routes.ts';
import { createIngest } from '../ingest/create-ingest-service.ts';
import type { IssueToken } from '../ingest/ingest.ts';
import { type DecisionDeps, decisionRoutes, ingestRoutes } from '../ingest/routes.ts';
import { createRecordAlone } from '../ingest/store.ts';
import { SECOND } from '../lib/clock.ts';
import { readPolicy } from '../log/cosign-service.ts';
import { ledgerRoutes } from '../log/routes.ts';
import { mcpRoutes } from '../ops/mcp/mcp-routes.ts';
import { type HealthDeps, healthRoutes, type OpenApi, referenceRoutes } from '../ops/reference-routes.ts';
import { createCaseByKeyService } from '../rights/contests/case-by-key-service.ts';
import { readPageNotice } from '../rights/dsar/service.ts';
import { eraseOwn } from '../rights/erase/erase-service.ts';
import { evidenceRoutes } from '../rights/evidence/evidence-routes.ts';
import { createEvidenceService } from '../rights/evidence/evidence-service.ts';
import { createExportPlaces, createSendExport } from '../rights/export-routes.ts';
import { meRoutes, myDataRoutes, type Sites } from '../rights/me/routes.ts';
import { createMeService } from '../rights/me/service.ts';
import { issueToken as createToken, openPresented } from '../rights/me/transparency.ts';
import { createAuthenticator } from '../rights/oidc-service.ts';
import { createOutcomeReporter } from '../rights/outcomes-store.ts';
import { receiptReply } from '../rights/receipts/receipt-files.ts';
import { caseRoutes, outcomeRoutes, privacyRoutes } from '../rights/routes.ts';
import { ROUTES } from '../schema/routes.ts';
import type { Services } from '../services.ts';
import { pubkeyRoutes } from '../tenants/pubkey-routes.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { VERSION } from '../version.ts';
import type { OpenServer } from './server-service.ts';

/** Hands each feature what its routes need, and joins the lists of all features. */

/** The name of a font has its version, so a browser keeps it; every other file is asked for again. */
const assetFiles = serveStatic(fileURLToPath(new URL('../../views/assets', import.meta.url)), {
  index: false,
  redirect: false,
  maxAge: 0,
  setHeaders(response, path) {
    if (path.endsWith('.woff2')) response.setHeader('cache-control', FOREVER);
  },
});
const agentFiles = builtFiles(new URL('../../dist/agent/', import.meta.url));
const script =
  (name: string, type = 'text/javascript'): PageRoute['page'] =>
  async (_request, response) =>
    sendBuilt(response, await agentFiles(name), { type, cache: FIVE_MINUTES });

const scriptRoutes: readonly ServedRoute[] = [
  page(ROUTES.getAgentScript, script('agent.js')),
  page(ROUTES.getAgentTypes, script('agent.d.ts', 'text/plain')),
  page(ROUTES.getClassicAgentScript, script('agent.classic.js')),
  page(ROUTES.getAgentWorkerScript, script('agent-worker.js')),
  page(ROUTES.getPasskeyScript, script('agent-passkey.js')),
  page(ROUTES.getMyDataScript, script('my-data.js')),
];

let openApi: Promise<OpenApi> | undefined;

/** Made when somebody asks for it, once. */
function loadOpenApi(): Promise<OpenApi> {
  openApi ??= import('../schema/openapi.ts').then(
    ({ openApiDocument }) => openApiDocument(VERSION) as unknown as OpenApi,
  );
  return openApi;
}

const sitesOf = ({ database, tenants }: Services): Sites => ({
  notice(kid, speaker) {
    const tenant = tenants.find(kid);
    return tenant ? readPageNotice(database, tenant, speaker) : Promise.resolve(null);
  },
  at(host) {
    const allTenants = tenants.all();
    const shown = ({ origins }: Tenant): boolean =>
      allTenants.length === 1 || [...origins].some((one) => new URL(one).host === host);
    return allTenants.filter(shown).map(({ kid }) => kid);
  },
});

type ConsentApi = ReturnType<typeof createConsentApi>;
type BotAuth = ReturnType<typeof createBotAuth>;

function createConsentPart(server: OpenServer, botAuth: BotAuth): ConsentApi {
  const { services, metrics, logFault, knowsOrigin } = server;
  return createConsentApi({
    ...services,
    issuer: () => server.address.url,
    knowsOrigin,
    findApiKey: server.findApiKey,
    limits: server.limiters.consent,
    eraseOwn: eraseOwn(services.rights.eraser),
    receiptReply,
    refresh: server.polling.refresh,
    botAuth,
    counted: (check) => metrics?.countChecks(check) ?? check,
    onDoubtFault: logFault('consent-doubt-lost'),
  });
}

function createIngestPart(
  server: OpenServer,
  consent: ConsentApi,
  {
    requireClock,
    botAuth,
    issueToken,
  }: Pick<ClockRule, 'requireClock'> & { botAuth: BotAuth; issueToken: IssueToken },
) {
  const { services, settings, metrics, monotonic } = server;
  return createIngest({
    ...services,
    monotonic,
    open: server.decryptor.open,
    limiter: server.limiters.ingest,
    knowsOrigin: server.knowsOrigin,
    isPublicHttps: server.address.url.startsWith('https:'),
    isHosting: settings.networks.isHosting,
    markNetwork: server.markerFor('gpd/network/v1'),
    requireClock,
    proveConsent: consent.proveConsent,
    grants: consent.grants,
    botAuth,
    issueToken,
    noteVisit: services.keyUse.noteVisit,
    linkedTo: services.rights.linkedTo,
    counted: (run) => metrics?.countIngest(run) ?? run,
    onFault: server.onFault,
  });
}

/** Distinguishes identical devices by a passkey. */
function createAttest(server: OpenServer, check: ConsentApi['check'], issueToken: IssueToken) {
  const { services, monotonic, log, metrics, markerFor } = server;
  const { database, serverSecret, clock } = services;
  const service = createAttestService({
    ...services,
    check,
    issueToken,
    openToken: (presented) => openPresented(serverSecret, clock(), presented),
    onOutcome(outcome, tenant) {
      metrics?.countAttestation(outcome);
      if (outcome === 'cloned') log.warn({ event: 'passkey-cloned', tenant });
    },
    record: createRecordAlone(database, monotonic),
  });
  return { service, markNetwork: markerFor('gpd/network/v1') };
}

/** Looks at /my-data at the same moment. */
const LOOKS_OF_TENANT = 8;

/** The services that only the routes of people's rights need. */
function createRightsServices({ services, markerFor }: OpenServer) {
  const { config, database, serverSecret, clock, random, tenants, rights } = services;
  const { api, contestTexts, eraser } = rights;
  const tenantOf = tenants.find;
  const { contests } = api;
  const markNetwork = markerFor('gpd/cases/v1');
  // A look at the page ends in milliseconds; it must not wait for somebody who reads an export slowly.
  const takePlace = createExportPlaces(LOOKS_OF_TENANT);
  const cases = createCaseByKeyService({
    database,
    serverSecret,
    tenantOf,
    random,
    contestTexts,
    contests,
    markNetwork,
  });
  return {
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

/** The routes tell this about the running server. */
export type RoutesHealth = Omit<HealthDeps, 'version'> & Pick<DecisionDeps, 'findDecision'>;

/** All routes, the routers behind them, and what waits until nothing is being written. */
export function createRoutes(server: OpenServer, clockRule: ClockRule, health: RoutesHealth) {
  const { services, address, limiters, onFault, logFault } = server;
  const { config, database, serverSecret, random, clock, tenants } = services;
  const origin = (): string => new URL(address.url).origin;
  const agents = { ...server.agents, claimNonce: createNonceClaimer(database) };
  const botAuth = createBotAuth(config, () => address.url, agents);
  const issueToken: IssueToken = ({ session, origin: page, now, ...subject }) =>
    createToken(serverSecret, random, now, subject, { session, origin: page });
  const consent = createConsentPart(server, botAuth);
  const ingest = createIngestPart(server, consent, { ...clockRule, botAuth, issueToken });
  const rights = createRightsServices(server);
  const door = createDoor({
    ...agents,
    tags: config.wba_tags,
    clock,
    tenants,
    record: ingest.recordRefusal,
    count: services.keyUse.noteAgent,
    limiterOf: (bucket, rate) => limiters.rowOf(bucket, rate),
  });
  const served: readonly ServedRoute[] = [
    ...healthRoutes({ ...health, version: VERSION }),
    ...ingestRoutes(ingest.route),
    ...decisionRoutes({ findDecision: health.findDecision, origin }),
    ...pubkeyRoutes((kid) => tenants.find(kid)?.publicKey ?? null),
    ...attestRoutes(createAttest(server, consent.check, issueToken)),
    ...agentRoutes({ door, tag: config.wba_tags[0] ?? '', origin }),
    ...consentRoutes(consent.routes),
    ...ledgerRoutes({
      ...services.log,
      isPublic: (kid) => tenants.find(kid)?.settings['ledger.public'] === true,
    }),
    ...evidenceRoutes({
      ...createEvidenceService({ ...services, embed: consent.embed, witnesses: readPolicy(config) }),
      actorOf: (kid, key) => operatorActor(consent.routes.tenantOf(kid).rightsKey, 'gpd api key', key),
    }),
    ...mcpRoutes({
      ...services,
      consent: services.consent.service,
      contestTexts: services.rights.contestTexts,
      onFault,
    }),
    ...privacyRoutes(services.rights.api, rights.sendExport),
    ...outcomeRoutes(rights.reportOutcome),
    ...meRoutes(rights.me, rights.sendExport),
    ...myDataRoutes(sitesOf(services), rights),
    ...caseRoutes(rights.cases),
    ...scriptRoutes,
    ...embedRoutes(consent.embed),
    ...referenceRoutes(loadOpenApi, () => services.tenants.all().length > 0),
  ];
  requireWholeTable(served);
  const authenticate = createAuthenticator(config, clock, logFault('oidc-failed'));
  return {
    served,
    deps: { authorization: consent.authorization, authenticate, limiters, onFault },
    behind: [exactRouter().use('/assets', assetFiles), mountConsole(server, origin)],
    idle: () => Promise.all([ingest.idle(), consent.idle()]),
  };
}
