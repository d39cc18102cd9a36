import { builtOnce, createFixedPage, FIVE_MINUTES, sendBuilt } from '../http/reply.ts';
import { pathOf } from '../http/request.ts';
import { json, page, type ServedRoute } from '../http/routes.ts';
import { Refusal } from '../lib/errors.ts';
import { ROUTES } from '../schema/routes.ts';

/**
 * Routes about the server itself: its addresses, the OpenAPI document, the page /docs, health and readiness.
 */

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

/** Replaces each $ref by its schema. It ends because no schema of gpd contains itself. */
function writeOut(document: OpenApi, schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map((item) => writeOut(document, item));
  const { $ref: address, ...ownProperties } = schema as { readonly $ref?: string };
  const named = address === undefined ? {} : document.components.schemas[address.split('/').at(-1) ?? ''];
  const entries = Object.entries({ ...(named as object), ...ownProperties });
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

/** Addresses that every gpd has. They reveal neither its tenants nor its version. */
const ROOT = {
  service: 'gpd',
  reference: '/docs',
  openapi: '/openapi.json',
  myData: '/my-data',
  case: '/case',
  console: '/console',
  health: '/healthz',
} as const;

/**
 * @param load reads the OpenAPI document, which is served as JSON and as a page without JavaScript
 * @param hasTenants false: the page / says how to add one
 */
export function referenceRoutes(
  load: () => Promise<OpenApi>,
  hasTenants: () => boolean,
): readonly ServedRoute[] {
  const sendRoot = createFixedPage('root', FIVE_MINUTES, () => ({ ...ROOT, isEmpty: false }));
  const sendEmptyRoot = createFixedPage('root', 'no-store', () => ({ ...ROOT, isEmpty: true }));
  const openApi = builtOnce(async () => JSON.stringify(await load()));
  const sendReference = createFixedPage('reference', FIVE_MINUTES, async () => {
    const document = await load();
    return { version: document.info.version, operations: listOperations(document) };
  });
  return [
    page(ROUTES.getRoot, (request, response) => {
      // Express leaves out a fragment, which no request target has.
      if (pathOf(request.originalUrl) !== '/') throw new Refusal('not-found');
      response.vary('Accept');
      if (request.accepts(['json', 'html']) !== 'html') return response.json(ROOT);
      return hasTenants() ? sendRoot(response) : sendEmptyRoot(response);
    }),
    page(ROUTES.getOpenApi, async (_request, response) =>
      sendBuilt(response, await openApi('openapi.json'), { type: 'application/json', cache: FIVE_MINUTES }),
    ),
    page(ROUTES.getReference, (_request, response) => sendReference(response)),
  ];
}

export interface HealthDeps {
  readonly version: string;
  /** Reasons why the node is not ready, in words; empty when it is. */
  readonly notReady: () => readonly string[];
  /** Parts that work more slowly than they should, in words; the node stays ready. */
  readonly degraded: () => readonly string[];
  /** When this node last finished its jobs; reported only, it never makes the node unready. */
  readonly swept: () => { readonly completeAt: string | null; readonly retentionAt: string | null };
}

/** GET /healthz answers without any work; GET /readyz gives the reasons why the node is not ready. */
export function healthRoutes(deps: HealthDeps): readonly ServedRoute[] {
  return [
    json(ROUTES.getHealth, () => ({ status: 'ok' as const, version: deps.version })),
    json(ROUTES.getReadiness, (_call, head) => {
      const notReady = deps.notReady();
      const status = notReady.length === 0 ? ('ready' as const) : ('not-ready' as const);
      if (status !== 'ready') head.status = 503;
      return { status, notReady, degraded: deps.degraded(), housekeeping: deps.swept() };
    }),
  ];
}
