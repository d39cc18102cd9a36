import type { Handlers } from '../http/register.ts';

interface Operation {
  readonly summary: string;
  readonly responses: Readonly<Record<string, { readonly description: string }>>;
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: unknown }>> };
}

export interface OpenApi {
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

function listOperations(document: OpenApi) {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      id: `${method}-${path.replace(/\W+/g, '-')}`,
      method: method.toUpperCase(),
      path,
      summary: operation.summary,
      request: operation.requestBody?.content['application/json']?.schema ?? null,
      responses: Object.entries(operation.responses).map(([status, { description }]) => ({
        status,
        description,
      })),
    })),
  );
}

/** The OpenAPI document, and the same as a page without JavaScript. */
export function referenceRoutes(load: () => Promise<OpenApi>): Handlers<'openapi' | 'reference'> {
  return {
    async openapi(_call, response) {
      response.set('cache-control', 'public, max-age=300').json(await load());
    },
    async reference(_call, response) {
      const document = await load();
      response.render('reference', { version: document.info.version, operations: listOperations(document) });
    },
  };
}

export interface HealthDeps {
  readonly version: string;
  /** What is not ready, in words; empty when all is. */
  readonly notReady: () => readonly string[];
  /** What works only slower, in words; told, and no reason to be not ready. */
  readonly degraded: () => readonly string[];
  /** When this node last swept and retained; told, and no reason to be not ready. */
  readonly swept: () => { readonly completeAt: string | null; readonly retentionAt: string | null };
}

/** GET /healthz has no work behind it; GET /readyz says what is not ready. */
export function healthRoutes(deps: HealthDeps): Handlers<'health' | 'ready'> {
  return {
    health: () => ({ status: 'ok', version: deps.version }),
    ready(_call, response) {
      const notReady = deps.notReady();
      const ready = notReady.length === 0;
      if (!ready) response.status(503);
      const status = ready ? 'ready' : 'not-ready';
      return { status, notReady, degraded: deps.degraded(), housekeeping: deps.swept() };
    },
  };
}
