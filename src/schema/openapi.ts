import { z } from 'zod';
import { ERRORS, type ErrorCode } from '../lib/errors.ts';
import { CONSENT_ROUTES } from './consent-routes.ts';
import { INGEST_ROUTES, type Route } from './public-routes.ts';
import { errorBodySchema } from './responses.ts';
import { RIGHTS_ROUTES } from './rights-routes.ts';

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

function securityOf({ credential }: Route): Doc {
  if (credential === 'api-key') return { security: [{ apiKey: [] }] };
  return credential === 'oidc' ? { security: [{ oidc: [] }] } : {};
}

function operation(route: Route): Doc {
  const path = [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '');
  const parameter = (name: string, place: 'path' | 'query', description?: string, required = true): Doc => ({
    name,
    in: place,
    required,
    schema: { type: 'string' },
    ...(description === undefined ? {} : { description }),
  });
  const parameters = [
    ...path.map((name) => parameter(name, 'path')),
    ...Object.entries(route.query ?? {}).map(([name, text]) => parameter(name, 'query', text)),
    ...Object.entries(route.optionalQuery ?? {}).map(([name, text]) => parameter(name, 'query', text, false)),
  ];
  const answers = Object.entries(route.responses).map(([status, answer]) => {
    const content = answer.schema ? jsonContent(answer.schema) : { [answer.type ?? 'text/plain']: {} };
    return [status, { description: answer.text, content }];
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
  for (const route of [...INGEST_ROUTES, ...RIGHTS_ROUTES, ...CONSENT_ROUTES])
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
