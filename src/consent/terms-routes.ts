import type { Router } from 'express';
import { type AuthorizeDeps, authorize, authorizeKey, type Scope } from '../http/caller.ts';
import { exactRouter } from '../http/exact-router.ts';
import { readJson, sendJson } from '../http/json-route.ts';
import { onlyMethods } from '../http/methods.ts';
import { requestFacts } from '../http/server.ts';
import { policyRequestSchema, purposesRequestSchema } from '../schema/consent.ts';

interface PurposeBody {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly lawfulBasis: string;
  readonly gpc: 'opt-out' | 'ignore';
  readonly ttlDays: number;
}

/** Purposes and policy versions: any key reads them, an operator's writes them. */
export interface TermsDeps extends AuthorizeDeps {
  readonly purposes: (kid: string) => Promise<readonly object[]>;
  /** @param apiKey id of the key that it came by */
  readonly savePurposes: (kid: string, purposes: readonly PurposeBody[], apiKey: string) => Promise<object>;
  readonly policies: (kid: string) => Promise<readonly object[]>;
  readonly publishPolicy: (
    kid: string,
    policy: { readonly text: string; readonly material: boolean },
    apiKey: string,
  ) => Promise<object>;
}

const ANY_KEY: readonly Scope[] = ['publishable', 'secret', 'read-only', 'operator'];

export function termsRoutes(deps: TermsDeps): Router {
  const router = exactRouter();
  router
    .route('/v1/consent/purposes')
    .get(async (request, response) => {
      const { kid } = await authorize(deps, requestFacts(request), ANY_KEY);
      sendJson(response, 200, { purposes: await deps.purposes(kid) });
    })
    .put(async (request, response) => {
      const { kid, id } = await authorizeKey(deps, requestFacts(request), 'operator');
      const { purposes } = await readJson(request, purposesRequestSchema);
      sendJson(response, 200, await deps.savePurposes(kid, purposes, id));
    })
    .all(onlyMethods('GET', 'HEAD', 'PUT', 'OPTIONS'));
  router
    .route('/v1/consent/policies')
    .get(async (request, response) => {
      const { kid } = await authorize(deps, requestFacts(request), ANY_KEY);
      sendJson(response, 200, { policies: await deps.policies(kid) });
    })
    .post(async (request, response) => {
      const { kid, id } = await authorizeKey(deps, requestFacts(request), 'operator');
      const policy = await readJson(request, policyRequestSchema);
      sendJson(response, 201, await deps.publishPolicy(kid, policy, id));
    })
    .all(onlyMethods('GET', 'HEAD', 'POST', 'OPTIONS'));
  return router;
}
