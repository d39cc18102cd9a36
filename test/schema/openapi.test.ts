import { describe, expect, it } from 'vitest';
import { ANSWER_EXAMPLES, BODY_EXAMPLES } from '../../src/schema/examples.ts';
import { openApiDocument } from '../../src/schema/openapi.ts';
import type { Route } from '../../src/schema/route.ts';
import { ROUTE_NAMES, ROUTES } from '../../src/schema/routes.ts';
import { WEBHOOK_EVENTS } from '../../src/schema/webhooks.ts';

/** JSON of any shape. */
type Loose = { readonly [key: string]: Loose } & { readonly [index: number]: Loose };

const { paths, components, tags } = openApiDocument('0.0.0') as unknown as {
  paths: Record<string, Record<string, Loose>>;
  components: { schemas: Record<string, Loose> };
  tags: readonly { name: string }[];
};
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ what: `${method} ${path}`, operation })),
);

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly schema: { readonly pattern?: string };
}
const parametersOf = (operation: Loose | undefined): readonly Parameter[] =>
  (operation?.['parameters'] ?? []) as unknown as readonly Parameter[];

/** The schema itself, where the node names it. */
const target = (node: unknown): unknown => {
  const { $ref: address } = (node ?? {}) as { $ref?: string };
  return address === undefined ? node : components.schemas[address.replace('#/components/schemas/', '')];
};

/** Every schema of a property by this name. */
function* properties(part: unknown, name: string): Generator<Record<string, unknown>> {
  const node = target(part);
  if (typeof node !== 'object' || node === null) return;
  for (const [key, value] of Object.entries(node)) {
    if (key === 'properties' && name in (value as object)) {
      yield target((value as Record<string, unknown>)[name]) as Record<string, unknown>;
    }
    yield* properties(value, name);
  }
}

describe('the OpenAPI document', () => {
  it('says of every parameter what it looks like', () => {
    const shapeless = operations.flatMap(({ what: route, operation }) =>
      parametersOf(operation)
        .filter(({ schema }) => (target(schema) as typeof schema).pattern === undefined)
        .map(({ name }) => `${route} ${name}`),
    );
    // A version is whatever the build made of its files.
    expect(shapeless).toEqual(
      ['embed.js', 'extras.js'].map((name) => `get /v1/embed/{version}/${name} version`),
    );
  });

  it.each(['kid', 'principalId'])('says of every %s that is sent what it looks like', (name) => {
    const strings = operations.flatMap(({ operation }) => [...properties(operation['requestBody'], name)]);
    expect(strings.length).toBeGreaterThan(0);
    for (const schema of strings) expect(schema).toHaveProperty('pattern');
  });

  it('names the server, and the headers that a client has to read', () => {
    expect(openApiDocument('0.0.0')).toMatchObject({
      servers: [{ url: '/' }],
      components: { headers: { 'X-Request-Id': {}, 'Retry-After': {} } },
    });
    const answers = operations.flatMap(({ what: route, operation }) =>
      Object.entries(operation['responses'] ?? {}).map(([status, { headers }]) => ({
        answer: `${route} ${status}`,
        names: Object.keys(headers ?? {}),
      })),
    );
    expect(answers.filter(({ names }) => !names.includes('X-Request-Id'))).toEqual([]);
    const isBusy = (answer: string) => / (?:429|503)$/.test(answer) && answer !== 'get /readyz 503';
    expect(answers.filter(({ names }) => names.includes('Retry-After'))).toEqual(
      answers.filter(({ answer }) => isBusy(answer)),
    );
  });

  it('has no JSON answer without a schema but its own', () => {
    const open = operations.flatMap(({ what: route, operation }) =>
      Object.entries(operation['responses'] ?? {})
        .map(([status, answer]) => [status, answer['content']?.['application/json']] as const)
        .filter(([, media]) => media !== undefined && !('schema' in media))
        .map(([status]) => `${route} ${status}`),
    );
    expect(open).toEqual(['get /openapi.json 200']);
  });

  it('writes each shape once, under a name that something uses', () => {
    const places = new Map<string, string[]>();
    const walk = (node: unknown, place: string): void => {
      if (typeof node !== 'object' || node === null) return;
      if ('enum' in node || ('properties' in node && 'type' in node)) {
        const shape = JSON.stringify(node);
        places.set(shape, [...(places.get(shape) ?? []), place]);
      }
      for (const [key, value] of Object.entries(node)) walk(value, `${place}/${key}`);
    };
    walk(components.schemas, '');
    walk(paths, '');
    expect([...places.values()].filter((found) => found.length > 1)).toEqual([]);
    const all = JSON.stringify([components, openApiDocument('0.0.0')]);
    expect(Object.keys(components.schemas).filter((name) => !all.includes(`/schemas/${name}"`))).toEqual([]);
  });

  it('refers to a named shape in every body and answer that is JSON', () => {
    const bodies = operations.flatMap(({ what: route, operation }) =>
      [operation['requestBody'], ...Object.values(operation['responses'] ?? {})].flatMap((body) => {
        const schema = body?.['content']?.['application/json']?.['schema'];
        return schema && !('$ref' in schema) ? [route] : [];
      }),
    );
    expect(bodies).toEqual([]);
  });

  it('has an operationId for each operation that a generator can call a function by, and a tag', () => {
    const ids = operations.map(({ operation }) => operation['operationId'] as unknown as string);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[a-z]+(?:[A-Z][a-z]+)*$/);
    const declaredTags = new Set(tags.map(({ name }) => name));
    const usedTags = new Set(operations.flatMap(({ operation }) => operation['tags'] as unknown as string[]));
    expect(usedTags).toEqual(declaredTags);
  });

  it('has an example of each body, which the route would take', () => {
    const bodies = ROUTE_NAMES.map((name) => ({ name, route: ROUTES[name] as Route })).filter(
      ({ route }) => route.request && route.undocumented !== true,
    );
    const refused = bodies.filter(
      ({ name, route }) => !(name in BODY_EXAMPLES) || !route.request?.safeParse(BODY_EXAMPLES[name]).success,
    );
    expect(refused.map(({ name }) => name)).toEqual([]);
    const mismatches = Object.entries(ANSWER_EXAMPLES).filter(([name, example]) => {
      const { responses } = ROUTES[name as keyof typeof ROUTES] as Route;
      return Object.values(responses)[0]?.schema?.safeParse(example).success !== true;
    });
    expect(mismatches).toEqual([]);
  });

  it('describes each webhook, with its headers and one example', () => {
    const { webhooks } = openApiDocument('0.0.0') as unknown as { webhooks: Record<string, Loose> };
    expect(Object.keys(webhooks)).toEqual([...WEBHOOK_EVENTS]);
    for (const [type, { post }] of Object.entries(webhooks)) {
      const media = post?.['requestBody']?.['content']?.['application/json'];
      expect(media).toMatchObject({
        schema: { $ref: '#/components/schemas/WebhookDelivery' },
        example: { type },
      });
      const names = parametersOf(post).map(({ name }) => name);
      expect(names).toEqual(['webhook-id', 'webhook-timestamp', 'webhook-signature']);
    }
  });
});
