import { type Request, type RequestHandler, Router } from 'express';
import type { z } from 'zod';
import { Refusal } from '../lib/errors.ts';
import { MAX_BODY_BYTES } from '../schema/bundle.ts';
import type { Cors } from '../schema/route.ts';
import { ALL_ROUTES } from '../schema/routes.ts';
import { readBody } from './body.ts';
import { API_CORS, corsHeaders, INGEST_CORS, type KnowsOrigin, preflightHeaders } from './cors.ts';
import type { Limiter } from './hot.ts';
import { declaresTooMuch, isPlainJson, parseBody } from './json-body.ts';
import { charge } from './limiter.ts';
import { requestFacts } from './server.ts';

/** Size, media type, JSON, shape — after authorisation, before anything else. @throws {Refusal} */
export async function readJson<Schema extends z.ZodType>(request: Request, schema: Schema) {
  const { headers } = request;
  const closing = { headers: { connection: 'close' } };
  if (declaresTooMuch(headers['content-length'], MAX_BODY_BYTES))
    throw new Refusal('payload-too-large', closing);
  if (!isPlainJson(headers)) {
    throw new Refusal('unsupported-media-type', closing);
  }
  const body = await readBody(request, MAX_BODY_BYTES);
  if (!body) throw new Refusal('payload-too-large', closing);
  return parseBody(body, schema);
}

/** Paths are compared by case: a proxy that keeps /console from strangers has to keep /CONSOLE from them as well. */
export function exactRouter(): Router {
  return Router({ caseSensitive: true });
}

/** `/v1/consent`, `/v1/sessions`, `/privacy` …: all below answers preflights, what is not there too. */
const AREA = /^(?:\/v1)?\/[^/]+/;

const answerCors =
  (knowsOrigin: KnowsOrigin, allow: typeof API_CORS): RequestHandler =>
  (request, response, next) => {
    if (request.method === 'OPTIONS') {
      response
        .set(preflightHeaders(request.headers, knowsOrigin, allow))
        .status(204)
        .end();
      return;
    }
    response.set(corsHeaders(request.headers, knowsOrigin));
    next();
  };

/** CORS for a registered origin, on errors too; answers preflights. */
export function apiCors(knowsOrigin: KnowsOrigin): Router {
  const paths = (cors: Cors): string[] =>
    ALL_ROUTES.filter((route) => route.cors === cors && !route.lane).map(({ path }) => path);
  const areas = new Set(paths('api').flatMap((path) => AREA.exec(path) ?? []));
  return exactRouter()
    .use([...areas], answerCors(knowsOrigin, API_CORS))
    .use(paths('ingest'), answerCors(knowsOrigin, INGEST_CORS));
}

/** A bucket a client, before anything else is looked at: 429 past it. */
export function limitClients(limiter: Limiter): RequestHandler {
  return async (request, _response, next) => {
    await charge(limiter, requestFacts(request).limitKey);
    next();
  };
}
