import type { RequestListener } from 'node:http';
import { fileURLToPath } from 'node:url';
import { type Router, static as serveStatic } from 'express';
import { embedRoutes } from '../consent/banner-routes.ts';
import type { ConsentApi } from '../consent/consent-make.ts';
import { consentRoutes } from '../consent/routes.ts';
import { termsRoutes } from '../consent/terms-routes.ts';
import { builtFiles } from '../http/built-file.ts';
import { exactRouter } from '../http/exact-router.ts';
import { makeExpressApp } from '../http/express-app.ts';
import { consentCors } from '../http/json-route.ts';
import { decisionRoutes } from '../ingest/decisions-routes.ts';
import { scriptRoutes } from '../ingest/scripts-routes.ts';
import { ledgerRoutes } from '../log/routes.ts';
import { type HealthDeps, healthRoutes } from '../ops/health-routes.ts';
import { type OpenApi, referenceRoutes } from '../ops/reference-routes.ts';
import { myDataRoutes } from '../rights/me/my-data-routes.ts';
import { meRoutes } from '../rights/me/routes.ts';
import type { Rights } from '../rights/rights-make.ts';
import { privacyRoutes } from '../rights/routes.ts';
import type { DecisionResponse, PubKeyResponse } from '../schema/responses.ts';
import { pubkeyRoutes } from '../tenants/pubkey-routes.ts';

export interface RoutesDeps {
  readonly version: string;
  readonly notReady: () => readonly string[];
  readonly swept: HealthDeps['swept'];
  readonly findPublicKey: (kid: string) => PubKeyResponse | null;
  readonly consent: ConsentApi;
  readonly rights: Rights;
  readonly findDecision: (kid: string, requestId: string) => Promise<DecisionResponse | null>;
  readonly views: string;
  readonly https: boolean;
  readonly extra: readonly Router[];
  readonly onFault: (requestId: string, error: unknown) => void;
}

const assets = fileURLToPath(new URL('../../views/assets', import.meta.url));
const agentFiles = new URL('../../dist/agent/', import.meta.url);

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

/** Everything that Express serves. A module of its own, so that the start does not wait for it. */
export function makeRoutes(deps: RoutesDeps): RequestListener {
  const { consent, findDecision, rights } = deps;
  return makeExpressApp({
    routers: [
      healthRoutes(deps),
      pubkeyRoutes(deps.findPublicKey),
      scriptRoutes(builtFiles(agentFiles)),
      exactRouter().use(
        ['/v1/consent', '/v1/sessions', '/v1/principals', '/privacy', '/me'],
        consentCors(consent.consent.knowsOrigin),
      ),
      privacyRoutes({ ...rights.api, limiter: rights.limiter, authenticate: rights.authenticate }),
      myDataRoutes((kid) => deps.findPublicKey(kid) !== null),
      meRoutes({ ...consent.authorization, ...rights.me, privacyLimiter: rights.limiter }),
      consentRoutes(consent.consent),
      termsRoutes(consent.terms),
      embedRoutes(consent.embed),
      ledgerRoutes(consent.log),
      decisionRoutes({ ...consent.authorization, findDecision }),
      referenceRoutes(() => loadOpenApi(deps.version)),
      exactRouter().use('/assets', serveStatic(assets, { index: false, redirect: false, maxAge: 0 })),
      ...deps.extra,
    ],
    views: deps.views,
    https: deps.https,
    onFault: deps.onFault,
  }) as RequestListener;
}
