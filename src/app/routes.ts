import type { RequestListener } from 'node:http';
import type { Router } from 'express';
import type { ApiKey } from '../auth/api-key.ts';
import { decisionRoutes } from '../http/api/decisions.ts';
import { healthRoutes } from '../http/api/health.ts';
import { pubkeyRoutes } from '../http/api/pubkey.ts';
import { scriptRoutes } from '../http/api/scripts.ts';
import { makeExpressApp } from '../http/express-app.ts';
import type { Limiter } from '../http/hot.ts';
import type { DecisionResponse, PubKeyResponse } from '../schema/responses.ts';

export interface RoutesDeps {
  readonly version: string;
  readonly notReady: () => readonly string[];
  readonly findPublicKey: (kid: string) => PubKeyResponse | null;
  readonly findApiKey: (secret: string) => ApiKey | null;
  readonly findDecision: (kid: string, requestId: string) => Promise<DecisionResponse | null>;
  readonly consentLimiter: Limiter;
  readonly views: string;
  readonly https: boolean;
  readonly extra: readonly Router[];
  readonly onFault: (requestId: string, error: unknown) => void;
}

const agentFiles = new URL('../../dist/agent/', import.meta.url);

/** Everything that Express serves. A module of its own, so that the start does not wait for it. */
export function makeRoutes(deps: RoutesDeps): RequestListener {
  const { findApiKey, findDecision, consentLimiter: limiter } = deps;
  return makeExpressApp({
    routers: [
      healthRoutes({ version: deps.version, notReady: deps.notReady }),
      pubkeyRoutes(deps.findPublicKey),
      scriptRoutes(agentFiles),
      decisionRoutes({ findApiKey, findDecision, limiter }),
      ...deps.extra,
    ],
    views: deps.views,
    https: deps.https,
    onFault: deps.onFault,
  }) as RequestListener;
}
