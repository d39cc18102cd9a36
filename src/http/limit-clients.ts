import type { RequestHandler } from 'express';
import type { Limiter } from './hot.ts';
import { charge } from './limiter.ts';
import { requestFacts } from './server.ts';

/** A bucket a client, before anything else is looked at: 429 past it. */
export function limitClients(limiter: Limiter): RequestHandler {
  return async (request, _response, next) => {
    await charge(limiter, requestFacts(request).limitKey);
    next();
  };
}
