import type { Request, RequestHandler, Response } from 'express';
import type { z } from 'zod';
import { Refusal } from '../lib/errors.ts';
import { MAX_BODY_BYTES } from '../schema/bundle.ts';
import { readBody } from './body.ts';
import { CONSENT_CORS, corsHeaders, type KnowsOrigin, preflightHeaders } from './cors.ts';
import { declaresTooMuch, isPlainJson, parseBody } from './json-body.ts';

/** Size, media type, JSON, shape — after authorisation, before anything else. @throws {Refusal} */
export async function readJson<Schema extends z.ZodType>(
  request: Request,
  schema: Schema,
): Promise<z.output<Schema>> {
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

export function sendJson(response: Response, status: number, body: unknown): void {
  response.status(status).set('cache-control', 'no-store').json(body);
}

/** CORS for a registered origin, on errors too; answers preflights. */
export function consentCors(knowsOrigin: KnowsOrigin): RequestHandler {
  return (request, response, next) => {
    if (request.method === 'OPTIONS') {
      response
        .set(preflightHeaders(request.headers, knowsOrigin, CONSENT_CORS))
        .status(204)
        .end();
      return;
    }
    response.set(corsHeaders(request.headers, knowsOrigin));
    next();
  };
}
