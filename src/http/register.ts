import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { z } from 'zod';
import { type ApiKey, bearerToken, isSessionToken, type PrincipalSession } from '../auth/credentials.ts';
import type { Claimant } from '../auth/tokens.ts';
import { Refusal } from '../lib/errors.ts';
import { orElse } from '../lib/functions.ts';
import { parseStrictJson } from '../lib/json.ts';
import type { Answer } from '../schema/answer.ts';
import { MAX_BODY_BYTES } from '../schema/bundle.ts';
import type { Cors, Credential, KeyScope, Parameter, Route, RouteAnswer } from '../schema/route.ts';
import {
  ALL_ROUTES,
  allowedMethods,
  headerName,
  ROUTE_NAMES,
  ROUTES,
  type RouteName,
  type Routes,
} from '../schema/routes.ts';
import { charge, refuseOver, type WatchedLimiter } from './limiter.ts';
import {
  API_CORS,
  corsHeaders,
  INGEST_CORS,
  type KnowsOrigin,
  noteRefusal,
  open,
  preflightHeaders,
} from './reply.ts';
import { type HotRequest, type Limiter, readBody } from './request.ts';
import { requestFacts } from './server.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parameters are allowed, another type or a compressed body is not: Node passes over a coding of the transfer but chunked. */
export function isPlainJson(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  const transfer = headers['transfer-encoding']?.trim().toLowerCase() ?? 'chunked';
  return type === 'application/json' && encoding === 'identity' && transfer === 'chunked';
}

/** Content-Length is judged before a byte of the body is read. */
export function declaresTooMuch(contentLength: string | undefined, limit: number): boolean {
  return contentLength !== undefined && Number(contentLength) > limit;
}

/** Where it does not fit, never what was sent. */
function detailsOf(error: z.ZodError): string[] {
  return error.issues.slice(0, 10).map((issue) => {
    const path = issue.path.map(String).join('.');
    const keys = issue.code === 'unrecognized_keys' ? 'it has an unknown field' : issue.message;
    return path === '' ? keys : `${path}: ${keys}`;
  });
}

/** @throws {Refusal} `invalid-json`, or `invalid-request` with what to fix */
export function parseBody<Schema extends z.ZodType>(body: Uint8Array, schema: Schema): z.output<Schema> {
  const value = orElse(() => parseStrictJson(utf8.decode(body)), undefined);
  if (value === undefined) throw new Refusal('invalid-json');
  return parseShape(value, schema);
}

/** @throws {Refusal} `invalid-request` with what to fix */
export function parseShape<Schema extends z.ZodType>(value: unknown, schema: Schema): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new Refusal('invalid-request', { details: detailsOf(parsed.error) });
  return parsed.data;
}

/** Size, media type, JSON, shape — after authorisation, before anything else. @throws {Refusal} */
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

/** Who calls the consent API: a key of a tenant, or a person in a session. */
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
 * By the secret as presented, for a client; null for unknown and revoked alike.
 * @param spent seconds for which this client may cause no look-up
 */
export type FindApiKey = (secret: string, client: string, spent: number) => Promise<ApiKey | null>;

/** Of a request what says who sent it. */
export type Asker = Pick<HotRequest, 'headers' | 'limitKey'>;

/** The buckets of the consent API (ADR 0035). */
export interface ConsentLimits {
  /** By key, or by the principal of a session. */
  readonly key: Limiter;
  /** Per client address: for callers without a secret. */
  readonly client: WatchedLimiter;
  /** By client: withdrawals of the same. */
  readonly withdrawal: WatchedLimiter;
  /** By client: grants and denials of browser principals that the tenant does not know. */
  readonly newcomer: Limiter;
}

export interface AuthorizeDeps {
  readonly findApiKey: FindApiKey;
  readonly findSession: (token: string) => Promise<PrincipalSession | null>;
  readonly limits: ConsentLimits;
}

/** A publishable key is in every page: its caller may be anybody. */
export const isBrowser = (caller: Caller): caller is KeyCaller =>
  caller.kind === 'key' && caller.key.scope === 'publishable';

async function identify(
  deps: AuthorizeDeps,
  token: string,
  client: string,
  spent: number,
): Promise<Caller | null> {
  if (isSessionToken(token)) {
    refuseOver(spent);
    const session = await deps.findSession(token);
    return session && { kind: 'session', kid: session.kid, session };
  }
  const key = await deps.findApiKey(token, client, spent);
  return key && { kind: 'key', kid: key.kid, key };
}

/** Of a row of the table of routes what this needs. */
interface Admits {
  readonly credential: readonly (KeyScope | 'session')[];
  readonly counted?: Route['counted'] | undefined;
}

/** Rate, then 401, then 403 (contract section 1). @throws {Refusal} */
export async function authorize(
  deps: AuthorizeDeps,
  { headers, limitKey }: Asker,
  { credential, counted }: Admits,
): Promise<Caller> {
  const { limits } = deps;
  const ofClient = counted === 'withdrawal' ? limits.withdrawal : limits.client;
  const token = bearerToken(headers.authorization);
  const caller = token === null ? null : await identify(deps, token, limitKey, ofClient.spent(limitKey));
  const browser = caller !== null && isBrowser(caller);
  if (token !== null && (!caller || browser)) await charge(ofClient.charge, limitKey);
  if (token !== null && !caller) noteRefusal('unknown-key');
  if (!caller) throw new Refusal('unauthenticated', { headers: { 'www-authenticate': 'Bearer' } });
  const id = caller.kind === 'key' ? caller.key.hash : caller.session.principal;
  if (!browser) await charge(limits.key, counted === 'withdrawal' ? `withdraw ${id}` : id);
  // Browsers send Sec-Fetch-Site and let no page's script set or remove it (W3C Fetch Metadata); no backend sends it.
  const inPage = headers['sec-fetch-site'] !== undefined;
  if (inPage && caller.kind === 'key' && !browser) {
    noteRefusal('secret-key-in-page');
    throw new Refusal('secret-key-in-page');
  }
  if (!credential.includes(caller.kind === 'key' ? caller.key.scope : 'session'))
    throw new Refusal('insufficient-scope');
  // All visitors share this bucket: what is refused is not counted in it, nor what any of them needs to withdraw.
  if (browser && counted === undefined) await charge(limits.key, id);
  return caller;
}

/** A session speaks for its own principal and for nobody else. @throws {Refusal} */
export function requireOwnPrincipal(caller: Caller, principalId: string): void {
  if (caller.kind === 'session' && caller.session.principalId !== principalId)
    throw new Refusal('not-your-principal');
}

/**
 * A handler under its row of the table: credential → what the handler admits → body → headers → answer. The types of all
 * of them come from the row, so that an answer that does not fit its schema does not compile.
 */

type Output<P> = P extends { readonly schema: infer S extends z.ZodType } ? z.output<S> : never;
type Success<R extends Route> = R['responses'][keyof R['responses'] & (200 | 201 | 202)];

export type CallerOf<C extends Credential> = C extends 'oidc'
  ? Claimant
  : C extends readonly (infer Scope)[]
    ?
        | (Exclude<Scope, 'session'> extends never ? never : KeyCaller)
        | ('session' extends Scope ? SessionCaller : never)
    : null;

/** What is known of a request before its body is read. */
export interface Arrived<R extends Route>
  extends Pick<HotRequest, 'headers' | 'requestId' | 'target' | 'https'> {
  readonly caller: CallerOf<R['credential']>;
  /** By the schemas of the row; null for what does not fit. */
  readonly params: R extends { readonly params: infer P }
    ? { readonly [N in keyof P]: Output<P[N]> | null }
    : unknown;
  readonly query: Readonly<Record<string, unknown>>;
  /** The client behind the trust boundary, for limits; never stored raw. */
  readonly client: string;
  /** Its network: an IPv4 /24, an IPv6 /48. */
  readonly network: string;
}

export interface Call<R extends Route> extends Arrived<R> {
  readonly body: R extends { readonly request: infer S extends z.ZodType } ? z.output<S> : undefined;
  /** The headers that the row names. */
  readonly named: R extends { readonly headers: infer H }
    ? { readonly [N in keyof H]: Output<H[N]> | undefined }
    : unknown;
}

type Responding<C, A> = A extends { readonly type: string }
  ? (call: C, response: Response) => unknown
  : A extends { readonly schema: infer S extends z.ZodType }
    ? (call: C, response: Response) => Answer<S> | Promise<Answer<S>>
    : never;

/** Of a row whose answer has a media type the handler sends it; of every other row it returns what its schema says. */
export type Respond<R extends Route> = Responding<Call<R>, Success<R>>;

type Admitted<R extends Route> =
  | Respond<R>
  | { readonly request: z.ZodType<Call<R>['body']>; readonly respond: Respond<R> };

/** `admit` refuses before the body is read, and may narrow what the body may be. */
export type Handler<R extends Route> =
  | Respond<R>
  | { readonly admit: (arrived: Arrived<R>) => Promise<Admitted<R>> | Admitted<R> };

export type Handlers<N extends RouteName> = { readonly [Name in N]: Handler<Routes[Name]> };

/** Every route but the hot lanes, which are plain functions. */
export type ServedName = {
  [N in RouteName]: Routes[N] extends { readonly lane: true } ? never : N;
}[RouteName];

export interface RegisterDeps {
  readonly authorization: AuthorizeDeps;
  /** By the Authorization header. @throws {Refusal} 401, {Unavailable} 503 */
  readonly authenticate: (authorization: string | undefined) => Promise<Claimant>;
}

function callerOf(deps: RegisterDeps, { credential, counted }: Route, request: IncomingMessage) {
  if (credential === 'oidc') return deps.authenticate(request.headers.authorization);
  if (credential === 'none' || credential === 'kid') return Promise.resolve(null);
  return authorize(deps.authorization, requestFacts(request), { credential, counted });
}

/** What the row names of a request, each read by its schema. */
const readNamed = (
  named: Readonly<Record<string, Parameter>> = {},
  read: (schema: Parameter['schema'], name: string) => unknown,
): Record<string, unknown> =>
  Object.fromEntries(Object.entries(named).map(([name, { schema }]) => [name, read(schema, name)]));

const readParams = ({ params }: Route, given: Readonly<Record<string, string | readonly string[]>>) =>
  readNamed(params, (schema, name) => {
    const parsed = schema.safeParse([given[name]].flat().join('/'));
    return parsed.success ? parsed.data : null;
  });

/** @throws {Refusal} `invalid-request` */
const readHeaders = ({ headers }: Route, given: IncomingHttpHeaders) =>
  readNamed(headers, (schema, name) => {
    const parsed = schema.optional().safeParse(given[name]);
    if (parsed.success) return parsed.data;
    const details = parsed.error.issues.map(({ message }) => `${headerName(name)}: ${message}`);
    throw new Refusal('invalid-request', { details });
  });

function successOf({ responses }: Route): readonly [status: number, answer: RouteAnswer] {
  const [status, answer] = Object.entries(responses).find(([code]) => code.startsWith('2')) ?? [];
  if (status === undefined || answer === undefined) throw new Error('a route without a success');
  return [Number(status), answer];
}

/** A handler whose types are gone: they were checked against its own row where it was written. */
type Erased = (call: object, response: Response) => unknown;
type ErasedAdmitted = Erased | { readonly request: z.ZodType; readonly respond: Erased };
type ErasedHandler =
  | Erased
  | { readonly admit: (arrived: object) => Promise<ErasedAdmitted> | ErasedAdmitted };

/** The path of a row as Express spells it. */
function expressPath({ path, rest }: Route): string {
  return path.replace(/\{(\w+)\}/g, (_all, name: string) => (name === rest ? `*${name}` : `:${name}`));
}

/** Takes a row of the table by its name. Its method alone. */
function register<N extends RouteName>(
  router: Router,
  deps: RegisterDeps,
  name: N,
  handler: Handlers<RouteName>[N],
): void {
  const route: Route = ROUTES[name];
  const served = handler as unknown as ErasedHandler;
  const [status, { type }] = successOf(route);
  router[route.method](expressPath(route), async (request, response) => {
    if (route.cors === 'open') response.set(open);
    const { headers, query } = request;
    const caller = await callerOf(deps, route, request);
    const { limitKey: client, networkKey: network, requestId, https } = requestFacts(request);
    const params = readParams(route, request.params);
    const target = request.originalUrl;
    const arrived = { caller, params, query, headers, client, network, requestId, target, https };
    const admitted = typeof served === 'function' ? served : await served.admit(arrived);
    const isPlain = typeof admitted === 'function';
    const schema = isPlain ? route.request : admitted.request;
    const body = schema && (await readJson(request, schema));
    const call = { ...arrived, body, named: readHeaders(route, headers) };
    if (type === undefined) response.status(status).set('cache-control', 'no-store');
    const answer = await (isPlain ? admitted : admitted.respond)(call, response);
    if (type === undefined) response.json(answer);
  });
}

/** Every row of the table that is no lane, in the order of the table, and 405 for the rest. */
export function registerAll(deps: RegisterDeps, handlers: Handlers<ServedName>): Router {
  const router = exactRouter();
  const isServed = (name: RouteName): name is ServedName => !('lane' in ROUTES[name]);
  for (const name of ROUTE_NAMES.filter(isServed)) register(router, deps, name, handlers[name]);
  // In the same router, behind the handlers: Express would answer an OPTIONS that it does not find here.
  for (const route of ALL_ROUTES.filter(({ lane }) => lane !== true)) {
    const allow = allowedMethods(route.path).join(', ');
    router.all(expressPath(route), () => {
      throw new Refusal('method-not-allowed', { headers: { allow, ...(route.cors === 'open' ? open : {}) } });
    });
  }
  return router;
}
