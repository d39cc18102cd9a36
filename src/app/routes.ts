import type { RequestListener } from 'node:http';
import { fileURLToPath } from 'node:url';
import { type Response, type Router, static as serveStatic } from 'express';
import { type AttestRoutesDeps, attestRoutes } from '../attest/attest-routes.ts';
import { embedRoutes } from '../consent/banner-routes.ts';
import type { ConsentApi } from '../consent/consent-make.ts';
import { consentRoutes } from '../consent/routes.ts';
import { builtFiles, SHORT, sendBuilt } from '../http/built-file.ts';
import { makeExpressApp } from '../http/express-app.ts';
import { apiCors } from '../http/json-route.ts';
import { exactRouter } from '../http/methods.ts';
import { type Handlers, registerAll, type ServedName } from '../http/register.ts';
import { decisionRoutes } from '../ingest/decisions-routes.ts';
import { ledgerRoutes } from '../log/routes.ts';
import { type HealthDeps, healthRoutes, type OpenApi, referenceRoutes } from '../ops/reference-routes.ts';
import { meRoutes, myDataForms, myDataRoutes, type Sites } from '../rights/me/routes.ts';
import type { Rights } from '../rights/rights-make.ts';
import { caseRoutes, outcomeRoutes, privacyLimit, privacyRoutes } from '../rights/routes.ts';
import type { DecisionResponse, PubKeyResponse } from '../schema/responses.ts';
import { pubkeyRoutes } from '../tenants/pubkey-routes.ts';

export interface RoutesDeps {
  readonly version: string;
  readonly notReady: () => readonly string[];
  readonly swept: HealthDeps['swept'];
  readonly sites: Sites;
  readonly findPublicKey: (kid: string) => PubKeyResponse | null;
  readonly consent: ConsentApi;
  readonly rights: Rights;
  readonly attest: AttestRoutesDeps;
  readonly findDecision: (kid: string, requestId: string) => Promise<DecisionResponse | null>;
  readonly origin: () => string;
  readonly views: string;
  readonly https: boolean;
  readonly extra: readonly Router[];
  readonly onFault: (requestId: string, error: unknown) => void;
}

const assets = fileURLToPath(new URL('../../views/assets', import.meta.url));
const agentFiles = builtFiles(new URL('../../dist/agent/', import.meta.url));
const script = (name: string) => async (_call: unknown, response: Response) =>
  sendBuilt(response, await agentFiles(name), { type: 'text/javascript', cache: SHORT });

/** Made when somebody asks for it, once. */
const loadOpenApi = (() => {
  let made: Promise<OpenApi> | undefined;
  return (version: string): Promise<OpenApi> => {
    made ??= import('../schema/openapi.ts').then(
      ({ openApiDocument }) => openApiDocument(version) as unknown as OpenApi,
    );
    return made;
  };
})();

/** A handler for each row of the table: one too few or too many does not compile. */
function handlersOf(deps: RoutesDeps): Handlers<ServedName> {
  const { consent, rights } = deps;
  return {
    ...healthRoutes(deps),
    ...pubkeyRoutes(deps.findPublicKey),
    agentScript: script('agent.js'),
    classicScript: script('agent.classic.js'),
    workerScript: script('agent-worker.js'),
    passkeyScript: script('agent-passkey.js'),
    myDataScript: script('my-data.js'),
    ...privacyRoutes(rights.api),
    ...outcomeRoutes(rights.reportOutcome),
    ...myDataRoutes(deps.sites),
    ...meRoutes(rights.me),
    ...attestRoutes(deps.attest),
    ...caseRoutes(rights.cases),
    ...consentRoutes(consent.routes),
    ...embedRoutes(consent.embed),
    ...ledgerRoutes(consent.log),
    ...decisionRoutes(deps),
    ...referenceRoutes(() => loadOpenApi(deps.version)),
  };
}

/** Everything that Express serves. A separate module, so that the start does not wait for it. */
export function makeRoutes(deps: RoutesDeps): RequestListener {
  const { consent, rights } = deps;
  return makeExpressApp({
    routers: [
      apiCors(rights.knowsOrigin),
      privacyLimit(rights.limiter),
      myDataForms(rights.me),
      registerAll(
        { authorization: consent.authorization, authenticate: rights.authenticate },
        handlersOf(deps),
      ),
      exactRouter().use('/assets', serveStatic(assets, { index: false, redirect: false, maxAge: 0 })),
      ...deps.extra,
    ],
    views: deps.views,
    https: deps.https,
    onFault: deps.onFault,
  }) as RequestListener;
}
