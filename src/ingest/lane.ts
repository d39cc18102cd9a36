import type { ConcurrencyLimit } from '../http/limiter.ts';
import { declaresTooMuch, isPlainJson } from '../http/register.ts';
import {
  corsHeaders,
  errorReply,
  fullReply,
  INGEST_CORS,
  jsonReply,
  type KnowsOrigin,
  preflightHeaders,
  unavailable,
  withHeaders,
} from '../http/reply.ts';
import type { HotHandler, HotReply, HotRequest, Limiter } from '../http/request.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import type { Address } from '../lib/ip.ts';
import { MAX_BODY_BYTES } from '../schema/bundle.ts';
import { allowedMethods, ROUTES } from '../schema/routes.ts';
import type { Unsealed } from './open.ts';
import type { IngestInput } from './ports.ts';
import { type IngestAnswer, refusal, sessionCookie } from './respond.ts';
import type { Sessions } from './session.ts';

/** POST /_fp/i/v1: size → rate → media type → body → gate 503 → envelope → core (contract 3.1). */

export interface IngestLaneDeps {
  /** Null: the body is no SealedBundle. */
  readonly open: (body: Uint8Array) => Unsealed | null | Promise<Unsealed | null>;
  readonly ingest: (unsealed: Unsealed, input: IngestInput) => Promise<IngestAnswer>;
  readonly limiter: Limiter;
  readonly admission: ConcurrencyLimit;
  readonly knowsOrigin: KnowsOrigin;
  /** Whether pages of an origin may read what the tenant of a kid is answered. */
  readonly mayRead: (kid: string, origin: string) => boolean;
  readonly sessionOf: Sessions['of'];
  /** From a local database, when there is one. */
  readonly isHosting: (client: Address | null) => boolean | null;
  /** Salted hash of a client network, good for one day. */
  readonly markNetwork: (network: string) => string;
  readonly onFault: (requestId: string, error: unknown) => void;
}

const METHOD = ROUTES.ingest.method.toUpperCase();
const ALLOW = allowedMethods(ROUTES.ingest.path).join(', ');

const tooLarge = (): HotReply => errorReply('payload-too-large', { connection: 'close' });

function rateLimited(seconds: number): HotReply {
  const body = { error: 'rate-limited', reason: 'rate-limited' };
  return jsonReply(429, body, { 'retry-after': String(seconds), connection: 'close' });
}

function unavailableReply(error: Unavailable, more: Readonly<Record<string, string>> = {}): HotReply {
  const { code, headers, details } = unavailable(error);
  return errorReply(code, { ...headers, ...more }, details);
}

/** Counters that several nodes share may be out of reach; the body was not read then. */
function refusedBeforeCore(error: unknown): HotReply {
  if (error instanceof Unavailable) return unavailableReply(error, { connection: 'close' });
  throw error;
}

/** Holds nothing of the bundle while the database is waited for: what a frame holds, the collector copies. */
async function finishReply(
  deps: IngestLaneDeps,
  requestId: string,
  headers: Readonly<Record<string, string>>,
  outcome: Promise<IngestAnswer>,
): Promise<HotReply> {
  const finish = ({ status, headers: own, body }: HotReply): HotReply => ({
    status,
    headers: Object.assign({}, headers, own),
    body,
  });
  try {
    const { status, response } = await outcome;
    return finish(jsonReply(status, response));
  } catch (error) {
    if (error instanceof Unavailable) return finish(unavailableReply(error));
    if (error instanceof Refusal) {
      // A later bundle without the session of the first: a page may read why, and its browser keeps the session that it has.
      const { 'set-cookie': _, ...cors } = headers;
      return errorReply(error.code, cors);
    }
    deps.onFault(requestId, error);
    const { status, response } = refusal('unknown', requestId);
    return finish(jsonReply(status, response));
  }
}

/** A separate function: the body can be collected once it is parsed, and not only when the answer is ready. */
async function readBundle(
  request: HotRequest,
  { admission, open }: IngestLaneDeps,
): Promise<Unsealed | 'too-large' | 'full' | null> {
  const body = await request.readBody(MAX_BODY_BYTES);
  if (!body) return 'too-large';
  if (admission.isFull()) return 'full';
  const opened = open(body);
  return opened instanceof Promise ? admission.hold(opened) : opened;
}

async function answer(deps: IngestLaneDeps, request: HotRequest): Promise<HotReply> {
  const { headers } = request;
  if (request.method !== METHOD) return errorReply('method-not-allowed', { allow: ALLOW });
  if (declaresTooMuch(headers['content-length'], MAX_BODY_BYTES)) return tooLarge();
  const wait = await deps.limiter(request.limitKey);
  if (wait > 0) return rateLimited(wait);
  if (!isPlainJson(headers)) {
    return errorReply('unsupported-media-type', { connection: 'close' });
  }
  const bundle = await readBundle(request, deps);
  if (bundle === 'too-large') return tooLarge();
  if (bundle === 'full') return fullReply();
  if (!bundle) return errorReply('malformed-sealed-bundle');
  return runCore(deps, request, bundle);
}

function runCore(deps: IngestLaneDeps, request: HotRequest, bundle: Unsealed): Promise<HotReply> {
  const session = deps.sessionOf(bundle.kid, request.requestId);
  const outcome = deps.ingest(bundle, {
    requestId: request.requestId,
    target: request.target,
    headers: request.headers,
    https: request.https,
    network: deps.markNetwork(request.networkKey),
    ja4: request.ja4,
    client: request.client,
    hosting: deps.isHosting(request.client),
    session,
  });
  // From here on the kid is known: another tenant's page may not read its answer.
  const headers = corsHeaders(request.headers, (origin) => deps.mayRead(bundle.kid, origin));
  headers['set-cookie'] = sessionCookie(session);
  return finishReply(deps, request.requestId, headers, deps.admission.hold(outcome));
}

export function makeIngestLane(deps: IngestLaneDeps): HotHandler {
  return async (request) => {
    if (request.method === 'OPTIONS') {
      const headers = preflightHeaders(request.headers, deps.knowsOrigin, INGEST_CORS);
      return { status: 204, headers, body: '' };
    }
    const reply = await answer(deps, request).catch(refusedBeforeCore);
    // An answer of the core has its own.
    if (reply.headers['vary'] !== undefined) return reply;
    return withHeaders(reply, corsHeaders(request.headers, deps.knowsOrigin));
  };
}
