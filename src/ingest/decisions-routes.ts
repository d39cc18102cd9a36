import type { Router } from 'express';
import { type AuthorizeDeps, authorize } from '../http/caller.ts';
import { exactRouter } from '../http/exact-router.ts';
import { onlyMethods } from '../http/methods.ts';
import { requestFacts } from '../http/server.ts';
import { Refusal } from '../lib/errors.ts';
import type { DecisionResponse } from '../schema/responses.ts';

export interface DecisionDeps extends AuthorizeDeps {
  readonly findDecision: (kid: string, requestId: string) => Promise<DecisionResponse | null>;
}

const REQUEST_ID = /^req_[0-9A-HJKMNP-TV-Z]{26}$/;

/** GET /v1/decisions/{requestId} (contract 3.6). Another tenant's decision looks like none. */
export function decisionRoutes(deps: DecisionDeps): Router {
  const router = exactRouter();
  router
    .route('/v1/decisions/:requestId')
    .get(async (request, response) => {
      const { kid } = await authorize(deps, requestFacts(request), ['secret', 'read-only', 'operator']);
      const { requestId } = request.params;
      const found = REQUEST_ID.test(requestId) ? await deps.findDecision(kid, requestId) : null;
      if (!found) throw new Refusal('no-such-decision');
      response.set('cache-control', 'no-store').json(found);
    })
    .all(onlyMethods('GET', 'HEAD'));
  return router;
}
