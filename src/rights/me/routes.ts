import type { Request, Router } from 'express';
import type { PrincipalSession } from '../../auth/session.ts';
import { type AuthorizeDeps, authorize } from '../../http/caller.ts';
import { cookieValues } from '../../http/cookies.ts';
import { exactRouter } from '../../http/exact-router.ts';
import type { Limiter } from '../../http/hot.ts';
import { readJson, sendJson } from '../../http/json-route.ts';
import { onlyMethods } from '../../http/methods.ts';
import { requestFacts } from '../../http/server.ts';
import { Refusal } from '../../lib/errors.ts';
import { linkRequestSchema, meRequestSchema } from '../../schema/rights.ts';
import { privacyLimit } from '../routes.ts';

/** POST /me and POST /v1/principals/link: what a transparency token is good for (contract 3.5 and 6.1). */

interface Presented {
  readonly token: unknown;
  readonly sessions: readonly string[];
  readonly origin: string | undefined;
}

export interface MeRouteDeps extends AuthorizeDeps {
  readonly privacyLimiter: Limiter;
  /** Every cause alike. @throws {Refusal} 401 */
  readonly check: (presented: Presented) => void;
  readonly forget: (presented: Presented) => Promise<object>;
  readonly view: (presented: Presented) => Promise<object>;
  readonly link: (session: PrincipalSession, presented: Presented) => Promise<object>;
}

function present(request: Request, token: unknown): Presented {
  const { origin, cookie } = request.headers;
  return { token, sessions: cookieValues(cookie, 'gp_session'), origin };
}

export function meRoutes(deps: MeRouteDeps): Router {
  const router = exactRouter();
  router
    .route('/me')
    .all(privacyLimit(deps.privacyLimiter))
    .post(async (request, response) => {
      const { token, action } = await readJson(request, meRequestSchema);
      const presented = present(request, token);
      deps.check(presented);
      if (action !== 'view' && action !== 'forget') {
        throw new Refusal('invalid-request', { details: ['action: view or forget'] });
      }
      sendJson(response, 200, await (action === 'view' ? deps.view(presented) : deps.forget(presented)));
    })
    .all(onlyMethods('POST', 'OPTIONS'));
  router
    .route('/v1/principals/link')
    .post(async (request, response) => {
      const caller = await authorize(deps, requestFacts(request), ['session']);
      const { token } = await readJson(request, linkRequestSchema);
      if (caller.kind !== 'session') throw new Refusal('insufficient-scope');
      sendJson(response, 201, await deps.link(caller.session, present(request, token)));
    })
    .all(onlyMethods('POST', 'OPTIONS'));
  return router;
}
