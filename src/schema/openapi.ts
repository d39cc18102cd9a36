import { z } from 'zod';
import { ERRORS, type ErrorCode } from '../lib/errors.ts';
import { errorBodySchema } from './responses.ts';
import type { Route } from './route.ts';
import { ALL_ROUTES, headerName } from './routes.ts';

type Doc = Record<string, unknown>;

function jsonSchema(schema: z.ZodType): Doc {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
  }) as Doc;
  return rest;
}

const jsonContent = (schema: z.ZodType): Doc => ({ 'application/json': { schema: jsonSchema(schema) } });

function errorResponses(codes: readonly ErrorCode[]): Doc {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of codes) byStatus.set(ERRORS[code][0], [...(byStatus.get(ERRORS[code][0]) ?? []), code]);
  return Object.fromEntries(
    [...byStatus].map(([status, list]) => [
      String(status),
      { description: list.join(', '), content: jsonContent(errorBodySchema) },
    ]),
  );
}

/** Any one of them is enough. */
function securityOf({ credential }: Route): Doc {
  if (credential === 'none' || credential === 'kid') return {};
  if (credential === 'oidc') return { security: [{ oidc: [] }] };
  return { security: credential.map((scope) => ({ apiKey: [scope] })) };
}

function parametersOf(route: Route): Doc[] {
  const list = (named: Route['params'] = {}, place: string, required: boolean): Doc[] =>
    Object.entries(named).map(([name, { text, schema }]) => ({
      name: place === 'header' ? headerName(name) : name,
      in: place,
      required,
      schema: jsonSchema(schema),
      description: text,
    }));
  return [
    ...list(route.params, 'path', true),
    ...list(route.query, 'query', true),
    ...list(route.optionalQuery, 'query', false),
    ...list(route.headers, 'header', false),
  ];
}

function operation(route: Route): Doc {
  const parameters = parametersOf(route);
  const answers = Object.entries(route.responses).map(([status, { text, schema, type }]) => {
    const media = schema ? { schema: jsonSchema(schema) } : {};
    return [status, { description: text, content: { [type ?? 'application/json']: media } }];
  });
  return {
    summary: route.summary,
    operationId: `${route.method} ${route.path}`.replace(/\W+/g, '_').replace(/_$/, ''),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.request ? { requestBody: { required: true, content: jsonContent(route.request) } } : {}),
    ...securityOf(route),
    responses: { ...errorResponses(route.errors), ...Object.fromEntries(answers) },
  };
}

/** The OpenAPI 3.1 document of all routes; `docs/openapi.json` is this, byte for byte. */
export function openApiDocument(version: string): Doc {
  const paths: Record<string, Doc> = {};
  for (const route of ALL_ROUTES.filter(({ undocumented }) => undocumented !== true))
    paths[route.path] = { ...paths[route.path], [route.method]: operation(route) };
  return {
    openapi: '3.1.0',
    info: { title: 'gpd', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer' },
        oidc: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
      },
    },
    paths,
  };
}
