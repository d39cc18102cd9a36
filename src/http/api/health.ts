import type { Router } from 'express';
import { exactRouter } from '../exact-router.ts';
import { onlyMethods } from './methods.ts';

export interface HealthDeps {
  readonly version: string;
  /** What is not ready, in words; empty when all is. */
  readonly notReady: () => readonly string[];
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
      response.status(ready ? 200 : 503).json({ status: ready ? 'ready' : 'not-ready', notReady });
    })
    .all(onlyMethods('GET', 'HEAD'));
  return router;
}
