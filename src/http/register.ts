import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { z } from 'zod';
import { type ApiKey, bearerToken, isSessionToken, type PrincipalSession } from '../auth/credentials.ts';
import type { Claimant } from '../auth/tokens.ts';
import { Refusal, tryOr } from '../lib/errors.ts';
import { parseStrictJson } from '../lib/json.ts';
import type { Answer } from '../schema/answer.ts';
import { MAX_BODY_BYTES } from '../schema/bundle.ts';
import { explainIssue } from '../schema/explain-issue.ts';
import type { Cors, KeyScope, Parameters, Route, RouteAnswer, RouteCredential } from '../schema/route.ts';
import { ALL_ROUTES, allowedMethods, headerName } from '../schema/routes.ts';
import { charge, refuseOver, type WatchedLimiter } from './limiter.ts';
import {
  API_CORS,
  corsHeaders,
  INGEST_CORS,
  type KnowsOrigin,
  keyPrefix,
  noteRefusal,
  open,
  preflightHeaders,
} from './reply.ts';
import { declaresTooMuch, type HotRequest, isPlainJson, type Limiter, readBody } from './request.ts';
import { requestFacts } from './server.ts';

/**
 * Registers the table of routes in Express: who may call a route, what its body and parameters are, and
 * CORS.
 */

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Names the places that do not match, never a value. */
function detailsOf(error: z.ZodError): string[] {
  return error.issues.slice(0, 10).map((issue) => {
    const path = issue.path.map(String).join('.');
    return path === '' ? issue.message : `${path}: ${issue.message}`;
  });
}

/** @throws {Refusal} `invalid-json`, or `invalid-request` with what to fix */
export function parseBody<Schema extends z.ZodType>(body: Uint8Array, schema: Schema): z.output<Schema> {
  const value = tryOr(() => parseStrictJson(utf8.decode(body)), undefined);
  if (value === undefined) throw new Refusal('invalid-json');
  return parseShape(value, schema);
}

/** @throws {Refusal} `invalid-request` with what to fix */
export function parseShape<Schema extends z.ZodType>(value: unknown, schema: Schema): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  // Parses again to get the words: passing zod an error map would cost every good body 2 µs.
  const { error = parsed.error } = schema.safeParse(value, { error: explainIssue });
  throw new Refusal('invalid-request', { details: detailsOf(error) });
}

/** Checks size, media type, JSON and shape, right after authorisation. @throws {Refusal} */
async function readJson<Schema extends z.ZodType>(request: Request, schema: Schema) {
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

/** Compares paths case-sensitively: a proxy that blocks /console would not block /CONSOLE. */
export function exactRouter(): Router {
  return Router({ caseSensitive: true });
}

/** `/v1/consent`, `/v1/sessions`, `/privacy` …: every path below answers preflights, even unknown ones. */
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

/** Sets CORS for a registered origin, on errors too, and answers preflights. */
export function apiCors(knowsOrigin: KnowsOrigin): Router {
  const paths = (cors: Cors): string[] =>
    ALL_ROUTES.filter((route) => route.cors === cors && !route.lane).map(({ path }) => path);
  const areas = new Set(paths('api').flatMap((path) => AREA.exec(path) ?? []));
  return exactRouter()
    .use([...areas], answerCors(knowsOrigin, API_CORS))
    .use(paths('ingest'), answerCors(knowsOrigin, INGEST_CORS));
}

/** The caller of the consent API: a key of a tenant, or a person in a session. */
export interface KeyCaller {
  readonly kind: 'key';
  readonly kid: string;
  readonly key: ApiKey;
}
export interface SessionCaller {
  readonly kind: 'session';
  readonly kid: string;
  readonly session: PrincipalSession;
}
export type Caller = KeyCaller | SessionCaller;

/**
 * Finds the API key with this secret, for a client; null for unknown and revoked alike.
 * @param secondsBlocked while it is above 0, this client may cause no look-up
 */
export type FindApiKey = (secret: string, client: string, secondsBlocked: number) => Promise<ApiKey | null>;

/** The parts of a request that identify its sender. */
export type RequestSender = Pick<HotRequest, 'headers' | 'limitKey'>;

/** The buckets of the consent API (ADR 0035). */
export interface ConsentLimits {
  /** One bucket per key, or per principal of a session. */
  readonly key: Limiter;
  /** One bucket per client address, for callers without a secret. */
  readonly client: WatchedLimiter;
  /** One bucket per client, for withdrawals of the same callers. */
  readonly withdrawal: WatchedLimiter;
  /** One bucket per client, for callers without any credential. */
  readonly anonymous: Limiter;
  /** One bucket per client, for grants and denials of browser principals that the tenant does not know. */
  readonly newcomer: Limiter;
}

export interface AuthorizeDeps {
  readonly findApiKey: FindApiKey;
  readonly findSession: (token: string) => Promise<PrincipalSession | null>;
  readonly limits: ConsentLimits;
  readonly knowsOrigin: KnowsOrigin;
}

/** A publishable key is in every page: its caller may be anyone. */
export const isBrowser = (caller: Caller): caller is KeyCaller =>
  caller.kind === 'key' && caller.key.scope === 'publishable';

async function identify(
  deps: AuthorizeDeps,
  token: string,
  client: string,
  secondsBlocked: number,
): Promise<Caller | null> {
  if (isSessionToken(token)) {
    refuseOver(secondsBlocked);
    const session = await deps.findSession(token);
    return session && { kind: 'session', kid: session.kid, session };
  }
  const key = await deps.findApiKey(token, client, secondsBlocked);
  return key && { kind: 'key', kid: key.kid, key };
}

/** The parts of a route's row that authorisation needs. */
interface Admits {
  readonly credential: readonly (KeyScope | 'session')[];
  readonly limit: Route['limit'];
}

/**
 * Browsers send Sec-Fetch-Site and no script can set or remove it (W3C Fetch Metadata), but not from a page
 * without TLS: such a page is recognised by its origin. Backends send neither.
 */
const isFromPage = (headers: IncomingHttpHeaders, knowsOrigin: KnowsOrigin): boolean =>
  headers['sec-fetch-site'] !== undefined || (headers.origin !== undefined && knowsOrigin(headers.origin));

/** Rate, then 401, then 403 (contract section 1). @throws {Refusal} */
export async function authorize(
  deps: AuthorizeDeps,
  { headers, limitKey }: RequestSender,
  { credential, limit }: Admits,
): Promise<Caller> {
  const { limits } = deps;
  const isWithdrawal = limit === 'consent-withdrawal';
  const clientLimit = isWithdrawal ? limits.withdrawal : limits.client;
  const token = bearerToken(headers.authorization);
  const caller = token === null ? null : await identify(deps, token, limitKey, clientLimit.spent(limitKey));
  const browser = caller !== null && isBrowser(caller);
  if (token === null) await charge(limits.anonymous, limitKey);
  else if (!caller || browser) await charge(clientLimit.charge, limitKey);
  if (token !== null && !caller) noteRefusal('unknown-key', keyPrefix(token));
  if (!caller) throw new Refusal('unauthenticated', { headers: { 'www-authenticate': 'Bearer' } });
  const id = caller.kind === 'key' ? caller.key.hash : caller.session.principal;
  const keyId = caller.kind === 'key' ? caller.key.id : '';
  if (!browser) await charge(limits.key, isWithdrawal ? `withdraw ${id}` : id);
  if (caller.kind === 'key' && !browser && isFromPage(headers, deps.knowsOrigin)) {
    noteRefusal('secret-key-in-page', keyId);
    throw new Refusal('secret-key-in-page');
  }
  if (!credential.includes(caller.kind === 'key' ? caller.key.scope : 'session'))
    throw new Refusal('insufficient-scope');
  // All visitors share this bucket: refused requests are not counted in it, nor are withdrawals.
  if (browser && limit === 'consent') await charge(limits.key, id);
  return caller;
}

/** A session acts for its own principal only. @throws {Refusal} */
export function requireOwnPrincipal(caller: Caller, principalId: string): void {
  if (caller.kind === 'session' && caller.session.principalId !== principalId)
    throw new Refusal('not-your-principal');
}

/** Joins handlers to rows of the table of routes; a row's credential is checked before its handler runs. */

export type CallerOf<C extends RouteCredential> = C extends 'oidc'
  ? Claimant
  : C extends 'none' | 'kid'
    ? null
    : C extends readonly 'session'[]
      ? SessionCaller
      : C extends readonly KeyScope[]
        ? KeyCaller
        : Caller;

/**
 * The request of a handler: `C` is its row's credential, `P` the path parameters, `B` the schema of the body.
 */
export interface Call<C extends RouteCredential, P extends Parameters, B extends z.ZodType>
  extends Pick<HotRequest, 'headers' | 'requestId' | 'target' | 'https'> {
  readonly caller: CallerOf<C>;
  /** Null for a parameter that does not match its schema. */
  readonly params: { readonly [Name in keyof P]: z.output<P[Name]['schema']> | null };
  readonly query: Readonly<Record<string, unknown>>;
  /** The client behind the trust boundary, for limits; never stored raw. */
  readonly client: string;
  /** The client's network: an IPv4 /24, an IPv6 /48. */
  readonly network: string;
  /**
   * Checks size, media type, JSON and shape, in this order. A handler with a body must call it, after
   * refusals that need no body.
   * @param narrower replaces the schema of the row
   * @throws {Refusal}
   */
  readonly readBody: <N extends z.ZodType = B>(narrower?: N) => Promise<z.output<N>>;
}

/** Returns the answer, which is sent as JSON with the status of the row; `A` is the schema of the answer. */
export type JsonHandler<
  C extends RouteCredential,
  P extends Parameters,
  B extends z.ZodType,
  A extends z.ZodType,
> = (call: Call<C, P, B>, response: Response) => Answer<A> | Promise<Answer<A>>;

/** Sends the answer itself: a page, a file, a stream, or JSON of several shapes. */
export type SendingHandler<C extends RouteCredential, P extends Parameters, B extends z.ZodType> = (
  call: Call<C, P, B>,
  response: Response,
) => unknown;

interface Row<C extends RouteCredential, P extends Parameters, B extends z.ZodType> extends Route {
  readonly credential: C;
  readonly params?: P;
  readonly request?: B;
}

interface JsonRow<C extends RouteCredential, P extends Parameters, B extends z.ZodType, A extends z.ZodType>
  extends Row<C, P, B> {
  readonly responses: Readonly<
    Record<number, { readonly text: string; readonly schema: A; readonly type?: never }>
  >;
}

/** A row with its handler, whose types were checked against the row by `json` or `sending`. */
export interface ServedRoute {
  readonly row: Route;
  readonly handler: (call: never, response: Response) => unknown;
}

export function json<
  const C extends RouteCredential,
  P extends Parameters,
  B extends z.ZodType,
  A extends z.ZodType,
>(row: JsonRow<C, P, B, A>, handler: JsonHandler<C, P, B, A>): ServedRoute {
  return { row, handler };
}

export function sending<const C extends RouteCredential, P extends Parameters, B extends z.ZodType>(
  row: Row<C, P, B>,
  handler: SendingHandler<C, P, B>,
): ServedRoute {
  return { row, handler };
}

export interface RegisterDeps {
  readonly authorization: AuthorizeDeps;
  /** Reads the Authorization header. @throws {Refusal} 401, {Unavailable} 503 */
  readonly authenticate: (authorization: string | undefined) => Promise<Claimant>;
}

function callerOf(deps: RegisterDeps, { credential, limit }: Route, request: IncomingMessage) {
  if (credential === 'oidc') return deps.authenticate(request.headers.authorization);
  if (credential === 'none' || credential === 'kid') return Promise.resolve(null);
  return authorize(deps.authorization, requestFacts(request), { credential, limit });
}

function readParams(
  { params = {} }: Route,
  pathParts: Readonly<Record<string, string | readonly string[]>>,
): Record<string, unknown> {
  const read = Object.entries(params).map(([name, { schema }]) => {
    const parsed = schema.safeParse([pathParts[name]].flat().join('/'));
    return [name, parsed.success ? parsed.data : null];
  });
  return Object.fromEntries(read) as Record<string, unknown>;
}

/** An optional header. @param name in lower case @throws {Refusal} `invalid-request` */
export function readHeader<Schema extends z.ZodType>(
  headers: IncomingHttpHeaders,
  name: string,
  schema: Schema,
): z.output<Schema> | undefined {
  const parsed = schema.optional().safeParse(headers[name], { error: explainIssue });
  if (parsed.success) return parsed.data;
  const details = parsed.error.issues.map(({ message }) => `${headerName(name)}: ${message}`);
  throw new Refusal('invalid-request', { details });
}

function successOf({ responses }: Route): readonly [status: number, answer: RouteAnswer] {
  const [status, answer] = Object.entries(responses).find(([code]) => code.startsWith('2')) ?? [];
  if (status === undefined || answer === undefined) throw new Error('a route without a success');
  return [Number(status), answer];
}

/** The path of a row as Express spells it. */
export function expressPath({ path, rest }: Route): string {
  return path.replace(/\{(\w+)\}/g, (_all, name: string) => (name === rest ? `*${name}` : `:${name}`));
}

/** Registers one row: its path with its method only. */
function register(router: Router, deps: RegisterDeps, { row, handler }: ServedRoute): void {
  const [status, { type }] = successOf(row);
  router[row.method](expressPath(row), async (request, response) => {
    if (row.cors === 'open') response.set(open);
    const { headers, query } = request;
    const caller = await callerOf(deps, row, request);
    const params = readParams(row, request.params);
    const { limitKey: client, networkKey: network, requestId, https } = requestFacts(request);
    const target = request.originalUrl;
    let hasRead = row.request === undefined;
    const readBody = (narrower?: z.ZodType): Promise<unknown> => {
      hasRead = true;
      const schema = narrower ?? row.request;
      if (!schema) throw new Error(`${row.path} has no body`);
      return readJson(request, schema);
    };
    const call = { caller, params, query, headers, client, network, requestId, target, https, readBody };
    if (type === undefined) response.status(status).set('cache-control', 'no-store');
    const answer = await handler(call as never, response);
    if (!hasRead) throw new Error(`the handler of ${row.path} did not read the body`);
    if (type === undefined) response.json(answer);
  });
}

/** Every row without a lane with its handler, in order. @throws {Error} when a row has no handler or two */
function orderRoutes(served: readonly ServedRoute[]): readonly ServedRoute[] {
  return ALL_ROUTES.filter(({ lane }) => lane !== true).map((row) => {
    const [route, second] = served.filter((one) => one.row === row);
    if (!route || second)
      throw new Error(`${row.method} ${row.path} has ${route ? 'two handlers' : 'no handler'}`);
    return route;
  });
}

/** Registers every row without a lane; other methods on their paths get 405. */
export function registerAll(deps: RegisterDeps, served: readonly ServedRoute[]): Router {
  const router = exactRouter();
  const routes = orderRoutes(served);
  for (const route of routes) register(router, deps, route);
  // This is in the same router, after the handlers: Express would answer an OPTIONS request that it does not
  // find here.
  for (const { row } of routes) {
    const allow = allowedMethods(row.path).join(', ');
    router.all(expressPath(row), () => {
      throw new Refusal('method-not-allowed', { headers: { allow, ...(row.cors === 'open' ? open : {}) } });
    });
  }
  return router;
}
