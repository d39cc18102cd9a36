import { parse } from 'node:querystring';
import type { Request, Response } from 'express';
import type { z } from 'zod';
import type { Claimant } from '../auth/tokens.ts';
import { Refusal, tryOr } from '../lib/errors.ts';
import type { Answer } from '../schema/answer.ts';
import { MAX_BODY_BYTES } from '../schema/bundle.ts';
import type { Cors, KeyScope, Parameters, Route, RouteCredential } from '../schema/route.ts';
import { ALL_ROUTES, allowedMethods } from '../schema/routes.ts';
import {
  type AuthorizeDeps,
  authorize,
  type Caller,
  type KeyCaller,
  type SessionCaller,
} from './authorize.ts';
import { type ConcurrencyLimit, charge, FULL } from './limiter.ts';
import {
  API_CORS,
  corsHeaders,
  errorReply,
  INGEST_CORS,
  jsonReply,
  methodNotAllowed,
  open,
  preflightHeaders,
  type Reply,
  toRefusal,
  withHeaders,
} from './reply.ts';
import {
  declaresTooMuch,
  type HttpRequest,
  hasLeft,
  isPlainJson,
  type Limiter,
  parseBody,
  pathOf,
} from './request.ts';

/**
 * Joins handlers to rows of the table of routes, and does what the rows say: preflights, limits, 405,
 * credentials, parameters, bodies and CORS, for every route in one place.
 */

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
  extends HttpRequest {
  readonly caller: CallerOf<C>;
  /** Null for a parameter that does not match its schema. */
  readonly params: { readonly [Name in keyof P]: z.output<P[Name]['schema']> | null };
  readonly query: Readonly<Record<string, unknown>>;
  /**
   * Checks size, media type, JSON and shape, in this order. A handler with a body must call it, after
   * refusals that need no body.
   * @param narrower replaces the schema of the row
   * @throws {Refusal}
   */
  readonly readBody: <N extends z.ZodType = B>(narrower?: N) => Promise<z.output<N>>;
}

/** Status and further headers of a JSON answer, which its handler may change. */
interface AnswerHead {
  status: number;
  readonly headers: Record<string, string>;
}

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

/** A row with its handler, whose types were checked against the row by `json` or `reply`. */
interface ApiRoute {
  readonly row: Route;
  readonly answer: (call: never) => Reply | Promise<Reply>;
  /** Bounds how many are served at once, from the moment their bodies have arrived. */
  readonly bound: ConcurrencyLimit | null;
}

/** A row that Express answers: a page, or a file that browsers keep. */
export interface PageRoute {
  readonly row: Route;
  readonly page: (request: Request, response: Response) => unknown;
}

export type ServedRoute = ApiRoute | PageRoute;

export const isPage = (route: ServedRoute): route is PageRoute => 'page' in route;

/** Sends what the handler returns as JSON with the status of the row; `A` is the schema of the answer. */
export function json<
  const C extends RouteCredential,
  P extends Parameters,
  B extends z.ZodType,
  A extends z.ZodType,
>(
  row: JsonRow<C, P, B, A>,
  handler: (call: Call<C, P, B>, head: AnswerHead) => Answer<A> | Promise<Answer<A>>,
  bound: ConcurrencyLimit | null = null,
): ServedRoute {
  const status = Number(Object.keys(row.responses).find((code) => code.startsWith('2')));
  const answer = async (call: Call<C, P, B>): Promise<Reply> => {
    const head: AnswerHead = { status, headers: {} };
    const value = await handler(call, head);
    return jsonReply(head.status, value, head.headers);
  };
  return { row, answer, bound };
}

/** Sends the reply that the handler returns: a text, bytes, a stream, or JSON of several shapes. */
export function reply<const C extends RouteCredential, P extends Parameters, B extends z.ZodType>(
  row: Row<C, P, B>,
  answer: (call: Call<C, P, B>) => Reply | Promise<Reply>,
  bound: ConcurrencyLimit | null = null,
): ServedRoute {
  return { row, answer, bound };
}

/** Hands the row to Express. */
export function page(row: Route, handler: PageRoute['page']): ServedRoute {
  return { row, page: handler };
}

/** @throws {Error} when a row of the table has no handler or two */
export function requireWholeTable(served: readonly ServedRoute[]): void {
  for (const row of ALL_ROUTES) {
    const count = served.filter((one) => one.row === row).length;
    if (count !== 1)
      throw new Error(`${row.method} ${row.path} has ${count === 0 ? 'no handler' : 'two handlers'}`);
  }
}

/** One path of the table with the routes of its methods. */
interface Place {
  readonly routes: ReadonlyMap<string, ServedRoute>;
  readonly allow: readonly string[];
  readonly cors: Cors;
  readonly isHot: boolean;
  /** A monitor is never refused, and a hot route has its own bound. */
  readonly isUnbounded: boolean;
}

export interface FoundPlace {
  readonly place: Place;
  readonly pathParts: Readonly<Record<string, string>>;
}

function createPlace(routes: readonly ServedRoute[]): Place {
  const rows = routes.map(({ row }) => row);
  const byMethod = new Map(routes.map((route) => [route.row.method.toUpperCase(), route]));
  const get = byMethod.get('GET');
  if (get) byMethod.set('HEAD', get);
  return {
    routes: byMethod,
    allow: allowedMethods(rows[0]?.path ?? ''),
    cors: rows[0]?.cors ?? 'none',
    isHot: rows.some(({ hot }) => hot === true),
    isUnbounded: rows.every(({ limit, hot }) => limit === 'none' || hot === true),
  };
}

/** @returns reads the parameters of a path from its segments; null: it is another path */
function createMatcher({ path, rest }: Route) {
  const segments = path.split('/').map((text) => {
    const [, name, ending = ''] = /^\{(\w+)\}(.*)$/.exec(text) ?? [];
    return { text, name, ending };
  });
  return (parts: readonly string[]): Record<string, string> | null => {
    if (rest === undefined ? parts.length !== segments.length : parts.length < segments.length) return null;
    const found: Record<string, string> = {};
    for (const [i, { text, name, ending }] of segments.entries()) {
      const part = (name !== undefined && name === rest ? parts.slice(i).join('/') : parts[i]) ?? '';
      if (name === undefined ? part !== text : part.length <= ending.length || !part.endsWith(ending))
        return null;
      const value = part.slice(0, part.length - ending.length);
      // A malformed escape is the text itself, which fits no schema: 401 comes first (contract section 1).
      if (name !== undefined) found[name] = tryOr(() => decodeURIComponent(value), value);
    }
    return found;
  };
}

const NOTHING: Readonly<Record<string, never>> = {};

/** Compares paths case-sensitively: a proxy that blocks /console would not block /CONSOLE. */
function createFinder(served: readonly ServedRoute[]): (path: string) => FoundPlace | null {
  const paths = [...new Set(served.map(({ row }) => row.path))];
  const places = paths.map((path) => {
    const routes = served.filter(({ row }) => row.path === path);
    return { path, place: createPlace(routes), match: createMatcher(routes[0]?.row as Route) };
  });
  const exact = new Map<string, FoundPlace>(
    places
      .filter(({ path }) => !path.includes('{'))
      .map(({ path, place }) => [path, { place, pathParts: NOTHING }]),
  );
  const patterns = places.filter(({ path }) => path.includes('{'));
  return (path) => {
    const found = exact.get(path);
    if (found) return found;
    const parts = path.split('/');
    // Express takes a slash at the end of a path for none, and so do the routes that it once served.
    if (parts.length > 2 && parts.at(-1) === '') parts.pop();
    const shorter = exact.get(parts.join('/'));
    if (shorter && !shorter.place.isHot) return shorter;
    for (const { place, match } of patterns) {
      const pathParts = match(parts);
      if (pathParts) return { place, pathParts };
    }
    return null;
  };
}

export interface RoutesDeps {
  readonly authorization: AuthorizeDeps;
  /** Reads the Authorization header. @throws {Refusal} 401, {Unavailable} 503 */
  readonly authenticate: (authorization: string | undefined) => Promise<Claimant>;
  /** The limits that need no credential; `authorize` charges those of the consent API, the ingest its own. */
  readonly limiters: Readonly<Record<'privacy' | 'public', Limiter>>;
  readonly onFault: (requestId: string, error: unknown) => void;
}

/** The caller of a row; its rate is charged before, and 401 and 403 come first (contract section 1). */
function callerOf(deps: RoutesDeps, { credential, limit }: Route, request: HttpRequest) {
  if (credential === 'none' || credential === 'kid') return null;
  if (credential === 'oidc') return deps.authenticate(request.headers.authorization);
  return authorize(deps.authorization, request, { credential, limit });
}

function readParams({ params = {} }: Route, pathParts: FoundPlace['pathParts']): Record<string, unknown> {
  const read = Object.entries(params).map(([name, { schema }]) => {
    const parsed = schema.safeParse(pathParts[name]);
    return [name, parsed.success ? parsed.data : null];
  });
  return Object.fromEntries(read) as Record<string, unknown>;
}

function readQuery(target: string): Readonly<Record<string, unknown>> {
  const at = target.indexOf('?');
  return at === -1 ? NOTHING : parse(target.slice(at + 1));
}

const CLOSING = { headers: { connection: 'close' } };

/** Refuses a body by its head, before a byte of it is read. @throws {Refusal} */
function judgeHead({ headers }: HttpRequest): void {
  if (declaresTooMuch(headers['content-length'], MAX_BODY_BYTES))
    throw new Refusal('payload-too-large', CLOSING);
  if (!isPlainJson(headers)) throw new Refusal('unsupported-media-type', CLOSING);
}

/** Neither the sender nor the body is looked at, so that under overload a refusal costs little. */
const FULL_REPLY = errorReply(FULL.code, FULL.headers);

async function runHandler(
  deps: RoutesDeps,
  { row, answer, bound }: ApiRoute,
  pathParts: FoundPlace['pathParts'],
  request: HttpRequest,
): Promise<Reply> {
  if (bound?.isFull() === true) {
    judgeHead(request);
    return FULL_REPLY;
  }
  const caller = await callerOf(deps, row, request);
  let hasRead = row.request === undefined;
  let isInside = false;
  async function readBytes(limit: number): Promise<Buffer | null> {
    hasRead = true;
    const bytes = await request.readBytes(limit);
    if (bytes === null || bound === null) return bytes;
    bound.enter();
    isInside = true;
    return bytes;
  }
  async function readJson(narrower?: z.ZodType): Promise<unknown> {
    const schema = narrower ?? row.request;
    if (!schema) throw new Error(`${row.path} has no body`);
    judgeHead(request);
    const body = await readBytes(MAX_BODY_BYTES);
    if (!body) throw new Refusal('payload-too-large', CLOSING);
    return parseBody(body, schema);
  }
  const params = row.params ? readParams(row, pathParts) : NOTHING;
  const query = readQuery(request.target);
  const call = Object.assign({}, request, { caller, params, query, readBytes, readBody: readJson });
  try {
    const answered = await answer(call as never);
    if (!hasRead && answered.status < 400)
      throw new Error(`the handler of ${row.path} did not read the body`);
    return answered;
  } finally {
    if (isInside) bound?.leave();
  }
}

/**
 * Programs call these paths, also with the `Accept` of a browser: refusals below them are JSON
 * (docs/errors.md).
 */
export const INTERFACE = /^\/(?:v1|_fp|privacy|ledger)(?:\/|$)/i;

/** `/v1/consent`, `/v1/sessions`, `/privacy` …: every path below answers preflights, even unknown ones. */
const AREA = /^(?:\/v1)?\/[^/]+/;
const API_AREAS = new Set(
  ALL_ROUTES.filter(({ cors }) => cors === 'api').flatMap(({ path }) => AREA.exec(path) ?? []),
);
const corsOfArea = (path: string): Cors => (API_AREAS.has(AREA.exec(path)?.[0] ?? '') ? 'api' : 'none');

/**
 * Express answers this: a page, a file, a path without a row, or an error that a browser may read as a page.
 */
export interface HandOver {
  readonly headers: Readonly<Record<string, string>>;
  readonly error: unknown;
}

export type RouteTable = ReturnType<typeof createRouteTable>;

/** A server whose every path is Express's. */
export const NO_ROUTES: RouteTable = {
  find: () => null,
  answer: () => Promise.resolve({ headers: {}, error: null }),
};

export function createRouteTable(deps: RoutesDeps, served: readonly ServedRoute[]) {
  const { knowsOrigin } = deps.authorization;

  function replyToError(error: unknown, { requestId }: HttpRequest): Reply {
    const refusal = toRefusal(error);
    if (!refusal && !hasLeft(error)) deps.onFault(requestId, error);
    return errorReply(refusal?.code ?? 'internal', refusal?.headers, refusal?.details);
  }

  return {
    find: createFinder(served),
    /** Answers a request, or hands it over to Express. @param found the place of its path */
    async answer(found: FoundPlace | null, request: HttpRequest): Promise<Reply | HandOver> {
      const { method, headers } = request;
      const path = pathOf(request.target);
      const cors = found?.place.cors ?? corsOfArea(path);
      const isCredentialed = cors === 'api' || cors === 'ingest';
      if (isCredentialed && method === 'OPTIONS') {
        const allow = cors === 'api' ? API_CORS : INGEST_CORS;
        return { status: 204, headers: preflightHeaders(headers, knowsOrigin, allow), body: '' };
      }
      const route = found?.place.routes.get(method);
      const limit = route?.row.limit ?? 'public';
      let added: Readonly<Record<string, string>> = NOTHING;
      const corsAdded = () => (isCredentialed ? corsHeaders(headers, knowsOrigin) : added);
      let answered: Reply;
      try {
        if (limit === 'public' || limit === 'privacy') await charge(deps.limiters[limit], request.limitKey);
        if (cors === 'open') added = open;
        if (found && !route) throw methodNotAllowed(found.place.allow);
        if (!found || !route || isPage(route)) return { headers: corsAdded(), error: null };
        answered = await runHandler(deps, route, found.pathParts, request);
      } catch (error) {
        if (!INTERFACE.test(path)) return { headers: corsAdded(), error };
        answered = replyToError(error, request);
      }
      // The ingest has found its tenant by then, and its headers are of the tenant's own origins.
      return answered.headers['vary'] === undefined ? withHeaders(answered, corsAdded()) : answered;
    },
  };
}
