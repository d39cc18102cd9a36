import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Response, Router } from 'express';
import type { z } from 'zod';
import type { Claimant } from '../auth/claims.ts';
import { Refusal } from '../lib/errors.ts';
import type { Answer } from '../schema/answer.ts';
import type { Credential, Parameter, Route, RouteAnswer } from '../schema/route.ts';
import {
  ALL_ROUTES,
  allowedMethods,
  headerName,
  ROUTE_NAMES,
  ROUTES,
  type RouteName,
  type Routes,
} from '../schema/routes.ts';
import { type AuthorizeDeps, authorize, type KeyCaller, type SessionCaller } from './caller.ts';
import { open } from './cors.ts';
import type { HotRequest } from './hot.ts';
import { exactRouter, readJson } from './json-route.ts';
import { requestFacts } from './server.ts';

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
