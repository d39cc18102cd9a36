import type { Config } from '../config.ts';
import type { Database } from '../db/engine.ts';
import { type ConcurrencyLimit, createConcurrencyLimit } from '../http/limiter.ts';
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
import {
  declaresTooMuch,
  type HotHandler,
  type HotReply,
  type HotRequest,
  isPlainJson,
  type Limiter,
} from '../http/request.ts';
import type { Clock } from '../lib/clock.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import type { Address } from '../lib/ip.ts';
import { MAX_BODY_BYTES } from '../schema/bundle.ts';
import { allowedMethods, ROUTES } from '../schema/routes.ts';
import { endsChain } from './decisions-store.ts';
import { type IngestAnswer, type IngestInput, type IngestServices, ingest, refusal } from './ingest.ts';
import type { Unsealed } from './open.ts';
import type { TenantLookup } from './ports.ts';
import { createSessions, type Sessions, sessionCookie, type Updates } from './session.ts';
import { createRecorder } from './store.ts';

/**
 * POST /_fp/i/v1: size, rate, media type, body, concurrency limit, envelope (contract 3.1), then ingest and
 * its cookie.
 */

export interface IngestRouteDeps {
  /** Null if the body is not a SealedBundle. */
  readonly open: (body: Uint8Array) => Unsealed | null | Promise<Unsealed | null>;
  readonly ingest: (unsealed: Unsealed, input: IngestInput) => Promise<IngestAnswer>;
  readonly limiter: Limiter;
  readonly admission: ConcurrencyLimit;
  /** True if the public address is https, even if a proxy says otherwise about this request. */
  readonly isPublicHttps: boolean;
  readonly knowsOrigin: KnowsOrigin;
  /** True when pages of an origin may read the answers of a kid's tenant. */
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

export function createIngestRoute(deps: IngestRouteDeps): HotHandler {
  return async (request) => {
    if (request.method === 'OPTIONS') {
      const headers = preflightHeaders(request.headers, deps.knowsOrigin, INGEST_CORS);
      return { status: 204, headers, body: '' };
    }
    const reply = await answer(deps, request).catch(refuseUnread);
    // Answers of a known tenant have their own CORS headers by now.
    if (reply.headers['vary'] !== undefined) return reply;
    return withHeaders(reply, corsHeaders(request.headers, deps.knowsOrigin));
  };
}

async function answer(deps: IngestRouteDeps, request: HotRequest): Promise<HotReply> {
  const { headers } = request;
  if (request.method !== METHOD) return errorReply('method-not-allowed', { allow: ALLOW });
  if (declaresTooMuch(headers['content-length'], MAX_BODY_BYTES)) return tooLarge();
  const wait = await deps.limiter(request.limitKey);
  if (wait > 0) return rateLimited(wait);
  if (!isPlainJson(headers)) return errorReply('unsupported-media-type', { connection: 'close' });
  const bundle = await readBundle(request, deps);
  if (bundle === 'too-large') return tooLarge();
  if (bundle === 'full') return fullReply();
  if (!bundle) return errorReply('malformed-sealed-bundle');
  return answerBundle(deps, request, bundle);
}

const tooLarge = (): HotReply => errorReply('payload-too-large', { connection: 'close' });

function rateLimited(seconds: number): HotReply {
  const body = { error: 'rate-limited', reason: 'rate-limited' };
  return jsonReply(429, body, { 'retry-after': String(seconds), connection: 'close' });
}

/** A separate function, so that the body can be garbage-collected once it is parsed. */
async function readBundle(
  request: HotRequest,
  { admission, open }: IngestRouteDeps,
): Promise<Unsealed | 'too-large' | 'full' | null> {
  const body = await request.readBody(MAX_BODY_BYTES);
  if (!body) return 'too-large';
  if (admission.isFull()) return 'full';
  const opened = open(body);
  return opened instanceof Promise ? admission.admit(opened) : opened;
}

/** The kid is known now: another tenant's page must not read the answer, and the answer sets the cookie. */
async function answerBundle(deps: IngestRouteDeps, request: HotRequest, bundle: Unsealed): Promise<HotReply> {
  const { requestId } = request;
  const { kid } = bundle;
  const session = deps.sessionOf(kid, requestId);
  const outcome = deps.ingest(bundle, {
    requestId,
    target: request.target,
    headers: request.headers,
    https: deps.isPublicHttps || request.https,
    network: deps.markNetwork(request.networkKey),
    ja4: request.ja4,
    client: request.client,
    hosting: deps.isHosting(request.client),
    session,
  });
  const cors = corsHeaders(request.headers, (origin) => deps.mayRead(kid, origin));
  const headers = Object.assign({}, cors, { 'set-cookie': sessionCookie(session) });
  const withCookie = ({ status, headers: replyHeaders, body }: HotReply): HotReply => ({
    status,
    headers: Object.assign({}, headers, replyHeaders),
    body,
  });
  try {
    const { status, response } = await deps.admission.admit(outcome);
    return withCookie(jsonReply(status, response));
  } catch (error) {
    if (error instanceof Unavailable) return withCookie(unavailableReply(error));
    // The bundle lacks the session of the request that it names. The page may read the reason, and the
    // browser keeps its session.
    if (error instanceof Refusal) return errorReply(error.code, cors);
    deps.onFault(requestId, error);
    const { status, response } = refusal('unknown', requestId);
    return withCookie(jsonReply(status, response));
  }
}

function unavailableReply(error: Unavailable, extraHeaders: Readonly<Record<string, string>> = {}): HotReply {
  const { code, headers, details } = unavailable(error);
  return errorReply(code, { ...headers, ...extraHeaders }, details);
}

/** The counters that nodes share may be unreachable; then the body was not read. */
function refuseUnread(error: unknown): HotReply {
  if (error instanceof Unavailable) return unavailableReply(error, { connection: 'close' });
  throw error;
}

type HandedOn =
  | 'requireClock'
  | 'proveConsent'
  | 'grants'
  | 'botAuth'
  | 'issueToken'
  | 'noteVisit'
  | 'random';

/** The stores, keys and counters that a server hands to ingest. */
export interface IngestParts
  extends Pick<IngestServices, HandedOn>,
    Pick<IngestRouteDeps, 'open' | 'isHosting' | 'isPublicHttps' | 'markNetwork' | 'knowsOrigin' | 'onFault'>,
    Pick<Updates, 'linkedTo'> {
  readonly config: Config;
  readonly database: Database;
  readonly serverSecret: Uint8Array;
  readonly clock: Clock;
  readonly monotonic: () => number;
  readonly tenantOf: TenantLookup;
  readonly limiter: Limiter;
  /** Wraps the function so that its answers are counted. */
  readonly counted: (run: IngestRouteDeps['ingest']) => IngestRouteDeps['ingest'];
}

/** @returns the handler of POST /_fp/i/v1, and what waits until nothing is being recorded */
export function createIngest(parts: IngestParts) {
  const { database, clock, tenantOf, knowsOrigin, linkedTo } = parts;
  const recorder = createRecorder(database, parts.monotonic);
  const sessions = createSessions(parts.serverSecret);
  const services: IngestServices = {
    ...parts,
    tenants: tenantOf,
    now: clock,
    sessions,
    updates: { linkedTo, endsChain: (kid, requestId) => endsChain(database, kid, requestId) },
    recorder,
  };
  const lane = createIngestRoute({
    ...parts,
    ingest: parts.counted((unsealed, input) => ingest(services, unsealed, input)),
    admission: createConcurrencyLimit(),
    mayRead: (kid, origin) => tenantOf(kid)?.origins.has(origin) ?? knowsOrigin(origin),
    sessionOf: sessions.of,
  });
  return { lane, idle: () => recorder.idle() };
}
