import type { RequestListener } from 'node:http';
import { fileURLToPath } from 'node:url';
import { type Response, type Router, static as serveStatic } from 'express';
import { attestRoutes } from '../attest/attest-routes.ts';
import { type AttestDeps, makeAttestService } from '../attest/service.ts';
import { consentRoutes, embedRoutes } from '../consent/routes.ts';
import { makeConsole } from '../console/console-routes.ts';
import { makeExpressApp } from '../http/express-app.ts';
import { apiCors, exactRouter, type Handlers, registerAll, type ServedName } from '../http/register.ts';
import { builtFiles, SHORT, sendBuilt } from '../http/reply.ts';
import { type DecisionDeps, decisionRoutes } from '../ingest/decisions-routes.ts';
import { makeRecordAlone } from '../ingest/store.ts';
import { ledgerRoutes } from '../log/routes.ts';
import { makeDaySalt } from '../ops/limits.ts';
import { type HealthDeps, healthRoutes, type OpenApi, referenceRoutes } from '../ops/reference-routes.ts';
import { noticeOf } from '../rights/dsar/service.ts';
import { meRoutes, myDataForms, myDataRoutes, type Sites } from '../rights/me/routes.ts';
import { openPresented } from '../rights/me/transparency.ts';
import { type Rights, wireRights } from '../rights/rights-make.ts';
import { caseRoutes, outcomeRoutes, privacyLimit, privacyRoutes } from '../rights/routes.ts';
import { pubkeyRoutes } from '../tenants/pubkey-routes.ts';
import { VERSION } from '../version.ts';
import type { Features } from './features.ts';
import type { Platform } from './platform.ts';

interface PagesNeeds extends Omit<HealthDeps, 'version'>, Pick<DecisionDeps, 'findDecision'> {
  readonly clientSecret: string | null;
  readonly extra: readonly Router[];
}

const assets = fileURLToPath(new URL('../../views/assets', import.meta.url));
const agentFiles = builtFiles(new URL('../../dist/agent/', import.meta.url));
const script = (name: string) => async (_call: unknown, response: Response) =>
  sendBuilt(response, await agentFiles(name), { type: 'text/javascript', cache: SHORT });

let openApi: Promise<OpenApi> | undefined;

/** Made when somebody asks for it, once. */
function loadOpenApi(): Promise<OpenApi> {
  openApi ??= import('../schema/openapi.ts').then(
    ({ openApiDocument }) => openApiDocument(VERSION) as unknown as OpenApi,
  );
  return openApi;
}

const sitesOf = ({ database, directory }: Platform): Sites => ({
  notice(kid) {
    const tenant = directory.consentTenant(kid);
    return tenant ? noticeOf(database, tenant) : Promise.resolve(null);
  },
  at(host) {
    const all = directory.consentTenants();
    const shown = ({ origins }: (typeof all)[number]): boolean =>
      all.length === 1 || [...origins].some((one) => new URL(one).host === host);
    return all.filter(shown).map(({ kid }) => kid);
  },
});

/** What the routes of attestation are made from. */
function makeAttest(platform: Platform, { consent, issueToken }: Features) {
  const { config, database, serverSecret, clock, monotonic, log, metrics } = platform;
  const deps: Omit<AttestDeps, 'record'> = {
    ...platform,
    check: consent.consent.check,
    issueToken,
    epochDays: config.epoch_days,
    openToken: (presented) => openPresented(serverSecret, clock(), presented),
    onOutcome(outcome, tenant) {
      metrics?.countAttestation(outcome);
      if (outcome === 'cloned') log.warn({ event: 'passkey-cloned', tenant });
    },
  };
  const service = makeAttestService({ ...deps, record: makeRecordAlone(database, monotonic) });
  return { service, markNetwork: makeDaySalt(platform, 'gpd/network/v1') };
}

/** A handler for each row of the table: one too few or too many does not compile. */
function handlersOf(
  platform: Platform,
  features: Features,
  needs: PagesNeeds & Pick<DecisionDeps, 'origin'>,
  rights: Rights,
): Handlers<ServedName> {
  const { consent } = features;
  return {
    ...healthRoutes({ ...needs, version: VERSION }),
    ...pubkeyRoutes(platform.directory.publicKey),
    agentScript: script('agent.js'),
    classicScript: script('agent.classic.js'),
    workerScript: script('agent-worker.js'),
    passkeyScript: script('agent-passkey.js'),
    myDataScript: script('my-data.js'),
    ...privacyRoutes(rights.api, rights.sendExport),
    ...outcomeRoutes(rights.reportOutcome),
    ...myDataRoutes(sitesOf(platform)),
    ...meRoutes(rights.me, rights.sendExport),
    ...attestRoutes(makeAttest(platform, features)),
    ...caseRoutes(rights.cases),
    ...consentRoutes(consent.routes),
    ...embedRoutes(consent.embed),
    ...ledgerRoutes(consent.log),
    ...decisionRoutes(needs),
    ...referenceRoutes(loadOpenApi),
  };
}

/** Everything that Express serves. Loaded while the server starts, not before: the hot lanes answer first. */
export function makePages(platform: Platform, features: Features, needs: PagesNeeds): RequestListener {
  const { config, address, limiters, logFault } = platform;
  const { consent, rights: services } = features;
  const { clientSecret, extra } = needs;
  const origin = (): string => new URL(address.url).origin;
  const console = makeConsole({
    ...platform,
    onLoginFault: logFault('console-login-failed'),
    log: consent.log,
    clientSecret,
    rights: services,
    origin,
  });
  const rights = wireRights(config, {
    ...platform,
    ...services,
    limiter: limiters.privacy,
    markNetwork: makeDaySalt(platform, 'gpd/cases/v1'),
    onFault: logFault('oidc-failed'),
  });
  const { authorization } = consent;
  const handlers = handlersOf(platform, features, { ...needs, origin }, rights);
  return makeExpressApp({
    routers: [
      apiCors(rights.knowsOrigin),
      privacyLimit(rights.limiter),
      myDataForms(rights),
      registerAll({ authorization, authenticate: rights.authenticate }, handlers),
      exactRouter().use('/assets', serveStatic(assets, { index: false, redirect: false, maxAge: 0 })),
      console,
      ...extra,
    ],
    views: platform.views,
    https: address.url.startsWith('https:'),
    onFault: platform.onFault,
  }) as RequestListener;
}
