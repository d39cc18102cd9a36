import type { RequestHandler, Router } from 'express';
import type { LimitName } from '../schema/route.ts';
import { ALL_ROUTES } from '../schema/routes.ts';
import { charge, unlimited } from './limiter.ts';
import { exactRouter, expressPath } from './register.ts';
import type { Limiter } from './request.ts';
import { requestFacts } from './server.ts';

/**
 * The limits that need no credential. Those of the consent API are charged by `authorize`, of the ingest by
 * its lane.
 */

/**
 * Charges one bucket per client before anything else is read: 429 past it.
 * @param then the argument of `next`
 */
export function limitClients(limiter: Limiter, then?: 'router'): RequestHandler {
  return async (request, _response, next) => {
    await charge(limiter, requestFacts(request).limitKey);
    next(then);
  };
}

const METHODS: Readonly<Record<string, string>> = { HEAD: 'GET' };

/**
 * Charges each request by the row of its route. A request without a row, even one that finds nothing, is
 * `public`.
 */
export function limitRoutes(limiters: Readonly<Record<'privacy' | 'public', Limiter>>): Router {
  const charged: Partial<Record<LimitName, Limiter>> = {
    privacy: limiters.privacy,
    public: limiters.public,
  };
  const router = exactRouter();
  for (const row of ALL_ROUTES) {
    // After the first row that matches the others are skipped.
    const limit = limitClients(charged[row.limit] ?? unlimited, 'router');
    // Not `router.get`: Express would answer the OPTIONS requests of such a path itself.
    router.all(expressPath(row), (request, response, next) => {
      const method = METHODS[request.method] ?? request.method;
      return method.toLowerCase() === row.method ? limit(request, response, next) : next();
    });
  }
  return router.use(limitClients(limiters.public));
}
