import type { RequestListener } from 'node:http';
import { fileURLToPath } from 'node:url';
import { Router, static as serveStatic } from 'express';
import { consentRoutes } from '../http/api/consent.ts';
import { decisionRoutes } from '../http/api/decisions.ts';
import { healthRoutes } from '../http/api/health.ts';
import { consentCors } from '../http/api/json-route.ts';
import { ledgerRoutes } from '../http/api/ledger.ts';
import { pubkeyRoutes } from '../http/api/pubkey.ts';
import { type OpenApi, referenceRoutes } from '../http/api/reference.ts';
import { scriptRoutes } from '../http/api/scripts.ts';
import { termsRoutes } from '../http/api/terms.ts';
import { makeExpressApp } from '../http/express-app.ts';
import type { DecisionResponse, PubKeyResponse } from '../schema/responses.ts';
import type { ConsentApi } from './consent-api.ts';

export interface RoutesDeps {
  readonly version: string;
  readonly notReady: () => readonly string[];
  readonly findPublicKey: (kid: string) => PubKeyResponse | null;
  readonly consent: ConsentApi;
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
  const { consent, findDecision } = deps;
  return makeExpressApp({
    routers: [
      healthRoutes({ version: deps.version, notReady: deps.notReady }),
      pubkeyRoutes(deps.findPublicKey),
      scriptRoutes(agentFiles),
      Router().use(
        ['/v1/consent', '/v1/sessions', '/v1/principals'],
        consentCors(consent.consent.knowsOrigin),
      ),
      consentRoutes(consent.consent),
      termsRoutes(consent.terms),
      ledgerRoutes(consent.log),
      decisionRoutes({ ...consent.authorization, findDecision }),
      referenceRoutes(() => loadOpenApi(deps.version)),
      Router().use('/assets', serveStatic(assets, { index: false, redirect: false, maxAge: 0 })),
      ...deps.extra,
    ],
    views: deps.views,
    https: deps.https,
    onFault: deps.onFault,
  }) as RequestListener;
}
