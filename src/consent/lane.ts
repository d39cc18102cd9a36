import type { ConcurrencyLimit } from '../http/admission.ts';
import { type AuthorizeDeps, authorize } from '../http/caller.ts';
import { API_CORS, corsHeaders, type KnowsOrigin, preflightHeaders } from '../http/cors.ts';
import type { HotHandler, HotReply, HotRequest } from '../http/hot.ts';
import { declaresTooMuch, isPlainJson, parseBody } from '../http/json-body.ts';
import { errorReply, fullReply, jsonReply, unavailable, withHeaders } from '../http/reply.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import { MAX_BODY_BYTES } from '../schema/bundle.ts';
import type { DecisionAnswer } from '../schema/consent.ts';
import { allowedMethods, ROUTES } from '../schema/routes.ts';
import type { Check } from './service.ts';

/** POST /v1/consent/can-process: one keyed read between a request and its answer. */

export interface ConsentLaneDeps extends AuthorizeDeps {
  readonly check: (kid: string, request: Check) => Promise<DecisionAnswer>;
  readonly admission: ConcurrencyLimit;
  readonly knowsOrigin: KnowsOrigin;
}

const { path, method, request: bodySchema } = ROUTES.check;
const METHOD = method.toUpperCase();
const ALLOW = allowedMethods(path).join(', ');

async function answer(deps: ConsentLaneDeps, request: HotRequest): Promise<HotReply> {
  const { headers } = request;
  if (request.method !== METHOD) throw new Refusal('method-not-allowed', { headers: { allow: ALLOW } });
  const closing = { headers: { connection: 'close' } };
  const caller = await authorize(deps, request, ROUTES.check);
  if (declaresTooMuch(headers['content-length'], MAX_BODY_BYTES))
    throw new Refusal('payload-too-large', closing);
  if (!isPlainJson(headers)) {
    throw new Refusal('unsupported-media-type', closing);
  }
  const body = await request.readBody(MAX_BODY_BYTES);
  if (!body) throw new Refusal('payload-too-large', closing);
  if (deps.admission.isFull()) return fullReply();
  const asked = parseBody(body, bodySchema);
  return jsonReply(200, await deps.admission.hold(deps.check(caller.kid, asked)));
}

function refused(thrown: unknown): HotReply {
  const error = thrown instanceof Unavailable ? unavailable(thrown) : thrown;
  if (error instanceof Refusal) return errorReply(error.code, error.headers, error.details);
  throw error;
}

export function makeConsentLane(deps: ConsentLaneDeps): HotHandler {
  return async (request) => {
    if (request.method === 'OPTIONS') {
      const headers = preflightHeaders(request.headers, deps.knowsOrigin, API_CORS);
      return { status: 204, headers, body: '' };
    }
    const reply = await answer(deps, request).catch(refused);
    return withHeaders(reply, corsHeaders(request.headers, deps.knowsOrigin));
  };
}
