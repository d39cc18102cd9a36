import { json, type ServedRoute, sending } from '../http/register.ts';
import { pathOf } from '../http/request.ts';
import { Refusal } from '../lib/errors.ts';
import { ROUTES } from '../schema/routes.ts';

interface Operation {
  readonly summary: string;
  readonly responses: Readonly<Record<string, { readonly description: string }>>;
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: unknown }>> };
}

export interface OpenApi {
  readonly info: { readonly version: string };
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** The schema with the shapes that it names written out: no shape contains itself. */
function writeOut(document: OpenApi, schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map((item) => writeOut(document, item));
  const { $ref: address, ...own } = schema as { readonly $ref?: string };
  const named = address === undefined ? {} : document.components.schemas[address.split('/').at(-1) ?? ''];
  const entries = Object.entries({ ...(named as object), ...own });
  return Object.fromEntries(entries.map(([name, value]) => [name, writeOut(document, value)]));
}

function listOperations(document: OpenApi) {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      id: `${method}-${path.replace(/\W+/g, '-')}`,
      method: method.toUpperCase(),
      path,
      summary: operation.summary,
      request: writeOut(document, operation.requestBody?.content['application/json']?.schema ?? null),
      responses: Object.entries(operation.responses).map(([status, { description }]) => ({
        status,
        description,
      })),
    })),
  );
}

/** Addresses that every gpd has: nothing here tells which tenants it serves, or its version. */
const ROOT = {
  service: 'gpd',
  reference: '/docs',
  openapi: '/openapi.json',
  myData: '/my-data',
  case: '/case',
  console: '/console',
  health: '/healthz',
} as const;

/** Routes that say what the server is, with the OpenAPI document as JSON and as a page without JavaScript. */
export function referenceRoutes(load: () => Promise<OpenApi>): readonly ServedRoute[] {
  return [
    sending(ROUTES.getRoot, ({ target }, response) => {
      // Express leaves out a fragment, which no request target has.
      if (pathOf(target) !== '/') throw new Refusal('not-found');
      if (response.req.accepts(['json', 'html']) === 'html') response.render('root', ROOT);
      else response.json(ROOT);
    }),
    sending(ROUTES.getOpenApi, async (_call, response) => {
      response.set('cache-control', 'public, max-age=300').json(await load());
    }),
    sending(ROUTES.getReference, async (_call, response) => {
      const document = await load();
      response.render('reference', { version: document.info.version, operations: listOperations(document) });
    }),
  ];
}

export interface HealthDeps {
  readonly version: string;
  /** What is not ready, in words; empty when all is. */
  readonly notReady: () => readonly string[];
  /** Parts that work only slower, in words; they do not make the node unready. */
  readonly degraded: () => readonly string[];
  /** When this node last swept and retained; told, and no reason to be not ready. */
  readonly swept: () => { readonly completeAt: string | null; readonly retentionAt: string | null };
}

/** GET /healthz has no work behind it; GET /readyz says what is not ready. */
export function healthRoutes(deps: HealthDeps): readonly ServedRoute[] {
  return [
    json(ROUTES.getHealth, () => ({ status: 'ok' as const, version: deps.version })),
    json(ROUTES.getReadiness, (_call, response) => {
      const notReady = deps.notReady();
      const status = notReady.length === 0 ? ('ready' as const) : ('not-ready' as const);
      if (status !== 'ready') response.status(503);
      return { status, notReady, degraded: deps.degraded(), housekeeping: deps.swept() };
    }),
  ];
}
