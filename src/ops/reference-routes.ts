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
