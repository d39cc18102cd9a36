import { createConcurrencyLimit } from '../http/limiter.ts';
import {
  corsHeaders,
  errorReply,
  jsonReply,
  type KnowsOrigin,
  type Reply,
  unavailable,
} from '../http/reply.ts';
import { declaresTooMuch, type HttpRequest, isPlainJson, type Limiter } from '../http/request.ts';
import { json, reply, type ServedRoute } from '../http/routes.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import type { Address } from '../lib/ip.ts';
import { MAX_BODY_BYTES } from '../schema/bundle.ts';
import type { DecisionResponse } from '../schema/responses.ts';
import { ROUTES } from '../schema/routes.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { type IngestAnswer, type IngestInput, type IngestServices, ingest, refusal } from './ingest.ts';
import type { Unsealed } from './open.ts';
import { type Sessions, sessionCookie } from './session.ts';

/**
 * POST /_fp/i/v1: size, rate, media type, body, concurrency limit, envelope (contract 3.1), then ingest and
 * its cookie.
 */

type RunIngest = (unsealed: Unsealed, input: IngestInput) => Promise<IngestAnswer>;

export interface IngestRouteDeps {
  /** Null if the body is not a SealedBundle. */
  readonly open: (body: Uint8Array) => Unsealed | null | Promise<Unsealed | null>;
  readonly services: IngestServices;
  /** Wraps the ingest so that its answers are counted. */
  readonly counted: (run: RunIngest) => RunIngest;
  readonly limiter: Limiter;
  /** True if the public address is https, even if a proxy says otherwise about this request. */
  readonly isPublicHttps: boolean;
  readonly knowsOrigin: KnowsOrigin;
  readonly tenantOf: (kid: string) => Pick<Tenant, 'origins'> | undefined;
  readonly sessionOf: Sessions['of'];
  /** From a local database, when there is one. */
  readonly isHosting: (client: Address | null) => boolean | null;
  /** Salted hash of a client network, good for one day. */
  readonly markNetwork: (network: string) => string;
  readonly onFault: (requestId: string, error: unknown) => void;
}

interface Running extends IngestRouteDeps {
  readonly run: RunIngest;
}
type IngestCall = Omit<HttpRequest, 'method'>;

async function answerIngest(deps: Running, call: IngestCall): Promise<Reply> {
  const { headers } = call;
  if (declaresTooMuch(headers['content-length'], MAX_BODY_BYTES)) return tooLarge();
  const wait = await deps.limiter(call.limitKey).catch(refuseUnread);
  if (wait > 0) return rateLimited(wait);
  if (!isPlainJson(headers)) return errorReply('unsupported-media-type', { connection: 'close' });
  const read = await readBundle(deps, call);
  if (!read) return tooLarge();
  const { bundle, body } = read;
  if (!bundle) return errorReply('malformed-sealed-bundle');
  return answerBundle(deps, call, bundle, body);
}

const tooLarge = (): Reply => errorReply('payload-too-large', { connection: 'close' });

function rateLimited(seconds: number): Reply {
  const body = { error: 'rate-limited', reason: 'rate-limited' };
  return jsonReply(429, body, { 'retry-after': String(seconds), connection: 'close' });
}

/**
 * A separate function, so that the body can be garbage-collected once it is parsed, unless an agent may have
 * signed its digest.
 */
async function readBundle({ open }: Running, { headers, readBytes }: IngestCall) {
  const bytes = await readBytes(MAX_BODY_BYTES);
  const body = headers['content-digest'] === undefined ? undefined : bytes;
  return bytes && { bundle: await open(bytes), body: body ?? undefined };
}

/** The kid is known now: another tenant's page must not read the answer, and the answer sets the cookie. */
async function answerBundle(
  deps: Running,
  request: IngestCall,
  bundle: Unsealed,
  body: Uint8Array | undefined,
): Promise<Reply> {
  const { requestId } = request;
  const { kid } = bundle;
  const session = deps.sessionOf(kid, requestId);
  const outcome = deps.run(bundle, {
    requestId,
    target: request.target,
    headers: request.headers,
    body,
    https: deps.isPublicHttps || request.https,
    network: deps.markNetwork(request.networkKey),
    ja4: request.ja4,
    client: request.client,
    hosting: deps.isHosting(request.client),
    session,
  });
  const cors = corsHeaders(request.headers, (origin) => mayRead(deps, kid, origin));
  const headers = Object.assign({}, cors, { 'set-cookie': sessionCookie(session) });
  const withCookie = ({ status, headers: replyHeaders, body }: Reply): Reply => ({
    status,
    headers: Object.assign({}, headers, replyHeaders),
    body,
  });
  try {
    const { status, response } = await outcome;
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

function unavailableReply(error: Unavailable): Reply {
  const { code, headers, details } = unavailable(error);
  return errorReply(code, headers, details);
}

/** The counters that nodes share may be unreachable; then the body was not read. */
function refuseUnread(error: unknown): never {
  if (!(error instanceof Unavailable)) throw error;
  const { code, headers: retry, details } = unavailable(error);
  const headers = { ...retry, connection: 'close' };
  throw new Refusal(code, details ? { headers, details } : { headers });
}

/** True when pages of an origin may read the answers of a kid's tenant. */
const mayRead = ({ tenantOf, knowsOrigin }: IngestRouteDeps, kid: string, origin: string): boolean =>
  tenantOf(kid)?.origins.has(origin) ?? knowsOrigin(origin);

export function ingestRoutes(deps: IngestRouteDeps): readonly ServedRoute[] {
  const run = deps.counted((unsealed, input) => ingest(deps.services, unsealed, input));
  const running = { ...deps, run };
  return [reply(ROUTES.ingest, (call) => answerIngest(running, call), createConcurrencyLimit())];
}

export interface DecisionDeps {
  readonly findDecision: (kid: string, requestId: string) => Promise<DecisionResponse | null>;
  /** URL under which clients reach this server. */
  readonly origin: () => string;
}

/**
 * `GET /v1/decisions/{requestId}` for the tenant's backend (contract 3.6). Another tenant's decision looks as
 * if it did not exist.
 */
export function decisionRoutes({ findDecision, origin }: DecisionDeps): readonly ServedRoute[] {
  return [
    json(ROUTES.getDecision, async ({ caller, params: { requestId } }) => {
      const decision = requestId === null ? null : await findDecision(caller.kid, requestId);
      if (!decision) throw new Refusal('no-such-decision');
      return { ...decision, contestUrl: `${origin()}${ROUTES.getMyDataPage.path}?kid=${caller.kid}#contest` };
    }),
  ];
}
