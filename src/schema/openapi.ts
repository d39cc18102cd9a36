import { z } from 'zod';
import { ERRORS, type ErrorCode } from '../lib/errors.ts';
import { CLIENT_RULES } from './client-rules.ts';
import { COMPONENTS } from './components.ts';
import { ANSWER_EXAMPLES, BODY_EXAMPLES } from './examples.ts';
import { webhookDeliverySchema, webhookOperations } from './openapi-webhooks.ts';
import { errorBodySchema } from './responses.ts';
import { type Route, TAGS } from './route.ts';
import { headerName, ROUTE_NAMES, ROUTES, type RouteName } from './routes.ts';

/** Builds `/openapi.json` from the table of routes and their schemas. */

type Doc = Record<string, unknown>;

type JSONSchema = z.core.JSONSchema.BaseSchema;

const isNull = ({ type }: JSONSchema): boolean => type === 'null';

/**
 * Says a shape in the words that generators of clients know (openapi-generator 7.25): a whole number has 64
 * bits, a list of names or null is one type, a field that is always null is a text that may be null, and one
 * that is always true is a boolean.
 */
function simplify({ jsonSchema }: { readonly jsonSchema: JSONSchema }): void {
  if (jsonSchema.type === 'integer' && jsonSchema.maximum === Number.MAX_SAFE_INTEGER) {
    delete jsonSchema.maximum;
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
    jsonSchema.format = 'int64';
  }
  const [shape, other] = jsonSchema.anyOf ?? [];
  if (shape?.enum !== undefined && other !== undefined && isNull(other)) {
    delete jsonSchema.anyOf;
    Object.assign(jsonSchema, { type: [shape.type, 'null'], enum: [...(shape.enum as unknown[]), null] });
  }
  if (isNull(jsonSchema)) jsonSchema.type = ['string', 'null'];
  if (typeof jsonSchema.const === 'boolean') delete jsonSchema.const;
}

const OPTIONS = { io: 'input', unrepresentable: 'any', override: simplify } as const;
const components = z.registry<{ readonly id: string }>();
for (const [id, schema] of Object.entries(COMPONENTS)) components.add(schema, { id });
const addressOf = (id: string): string => `#/components/schemas/${id}`;

function withoutHead({ $schema: _dialect, $id: _address, ...rest }: Doc): Doc {
  return rest;
}

/** The named shapes by their names. A shape inside another one is a reference. */
function namedSchemas(): Doc {
  const { schemas } = z.toJSONSchema(components, { ...OPTIONS, uri: addressOf });
  const named = Object.entries(schemas).map(([id, schema]) => [id, withoutHead(schema as Doc)] as const);
  return Object.fromEntries(named.sort(([one], [other]) => one.localeCompare(other)));
}

/** A named shape becomes a reference. */
function schemaOf(schema: z.ZodType): Doc {
  const name = components.get(schema)?.id;
  return name === undefined ? withoutHead(z.toJSONSchema(schema, OPTIONS) as Doc) : { $ref: addressOf(name) };
}

const exampleOf = (example: unknown): Doc => (example === undefined ? {} : { example });

const jsonContent = (schema: z.ZodType, example?: unknown): Doc => ({
  'application/json': { schema: schemaOf(schema), ...exampleOf(example) },
});

/** Headers of answers that a client has to read, with their names in `components`. */
const HEADERS = {
  'X-Request-Id': {
    description: 'Names this request in the log of gpd.',
    schema: { type: 'string', pattern: '^req_[0-9A-Z]{26}$' },
  },
  'Retry-After': {
    description: 'Seconds to wait before the request is repeated.',
    schema: { type: 'integer', minimum: 0 },
  },
} as const;

function headersOf(status: string, { path }: Route): Doc {
  // A node that is not ready does not know how long it will take.
  const isBusy = status === '429' || (status === '503' && path !== '/readyz');
  const names = isBusy ? ['X-Request-Id', 'Retry-After'] : ['X-Request-Id'];
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function errorResponses(route: Route): Doc {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of route.errors)
    byStatus.set(ERRORS[code][0], [...(byStatus.get(ERRORS[code][0]) ?? []), code]);
  return Object.fromEntries(
    [...byStatus].map(([status, list]) => [
      String(status),
      {
        description: list.join(', '),
        headers: headersOf(String(status), route),
        content: jsonContent(errorBodySchema),
      },
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
      schema: schemaOf(schema),
      description: text,
    }));
  return [
    ...list(route.params, 'path', true),
    ...list(route.query, 'query', true),
    ...list(route.optionalQuery, 'query', false),
    ...list(route.headers, 'header', false),
  ];
}

/** Client generators make one function per operation, with the name of the row. */
function operation(operationId: RouteName, route: Route): Doc {
  const parameters = parametersOf(route);
  const answers = Object.entries(route.responses).map(([status, { text, schema, type }]) => {
    const example = status === '200' || status === '201' ? exampleOf(ANSWER_EXAMPLES[operationId]) : {};
    const media = schema ? { schema: schemaOf(schema), ...example } : {};
    const content = { [type ?? 'application/json']: media };
    const body = status === '204' ? {} : { content };
    return [status, { description: text, headers: headersOf(status, route), ...body }];
  });
  return {
    operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.request
      ? { requestBody: { required: true, content: jsonContent(route.request, BODY_EXAMPLES[operationId]) } }
      : {}),
    ...securityOf(route),
    responses: { ...errorResponses(route), ...Object.fromEntries(answers) },
  };
}

/** The OpenAPI 3.1 document of all routes; `docs/openapi.json` is this, byte for byte. */
export function openApiDocument(version: string): Doc {
  const paths: Record<string, Doc> = {};
  for (const name of ROUTE_NAMES) {
    const route: Route = ROUTES[name];
    if (route.undocumented !== true)
      paths[route.path] = { ...paths[route.path], [route.method]: operation(name, route) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'gpd', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/', description: 'The gpd that serves this document.' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    components: {
      schemas: namedSchemas(),
      headers: HEADERS,
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer' },
        oidc: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
      },
    },
    paths,
    webhooks: webhookOperations(schemaOf(webhookDeliverySchema)),
    'x-gpd-client': {
      ...CLIENT_RULES,
      errors: Object.fromEntries(Object.entries(ERRORS).map(([code, [status]]) => [code, status])),
    },
  };
}
