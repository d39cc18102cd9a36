import type { Router } from 'express';
import { exactRouter } from '../http/exact-router.ts';
import { onlyMethods } from '../http/methods.ts';

export interface HealthDeps {
  readonly version: string;
  /** What is not ready, in words; empty when all is. */
  readonly notReady: () => readonly string[];
  /** When this node last swept and retained; told, and no reason to be not ready. */
  readonly swept: () => { readonly completeAt: string | null; readonly retentionAt: string | null };
}

/** GET /healthz has no work behind it; GET /readyz says what is not ready. */
export function healthRoutes(deps: HealthDeps): Router {
  const router = exactRouter();
  router
    .route('/healthz')
    .get((_request, response) => {
      response.set('cache-control', 'no-store').json({ status: 'ok', version: deps.version });
    })
    .all(onlyMethods('GET', 'HEAD'));
  router
    .route('/readyz')
    .get((_request, response) => {
      const notReady = deps.notReady();
      const ready = notReady.length === 0;
      response.set('cache-control', 'no-store');
      const status = ready ? 'ready' : 'not-ready';
      response.status(ready ? 200 : 503).json({ status, notReady, housekeeping: deps.swept() });
    })
    .all(onlyMethods('GET', 'HEAD'));
  return router;
}
