import { describe, expect, it } from 'vitest';
import { openApiDocument } from '../../src/schema/openapi.ts';

/** As loose as JSON is. */
type Loose = { readonly [key: string]: Loose } & { readonly [index: number]: Loose };

const { paths } = openApiDocument('0.0.0') as unknown as { paths: Record<string, Record<string, Loose>> };
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

/** Every schema of a property by this name. */
function* properties(node: unknown, name: string): Generator<Record<string, unknown>> {
  if (typeof node !== 'object' || node === null) return;
  for (const [key, value] of Object.entries(node)) {
    if (key === 'properties' && name in (value as object)) {
      yield (value as Record<string, Record<string, unknown>>)[name] ?? {};
    }
    yield* properties(value, name);
  }
}

describe('the OpenAPI document', () => {
  it('says of every parameter what it looks like', () => {
    const shapeless = operations.flatMap(({ what, operation }) =>
      parametersOf(operation)
        .filter(({ schema }) => schema.pattern === undefined)
        .map(({ name }) => `${what} ${name}`),
    );
    // A version is whatever the build made of its files.
    expect(shapeless).toEqual([
      'get /v1/embed/{version}/embed.js version',
      'get /v1/embed/{version}/{language}.json version',
    ]);
  });

  it.each(['grant', 'deny', 'withdraw'])('names Idempotency-Key for %s', (action) => {
    const named = parametersOf(paths[`/v1/consent/${action}`]?.['post']);
    expect(named).toMatchObject([{ name: 'Idempotency-Key', in: 'header', required: false }]);
  });

  it.each(['/v1/ledger', '/ledger/{kid}'])('has the whole log under %s', (log) => {
    const below = Object.keys(paths).filter((path) => path.startsWith(`${log}/`));
    expect(below.map((path) => path.slice(log.length))).toEqual([
      '/checkpoint',
      '/vkey',
      '/export',
      '/tile/{level}/{index}',
    ]);
  });

  it.each(['kid', 'principalId'])('says of every %s that is sent what it looks like', (name) => {
    const sent = operations.flatMap(({ operation }) => [...properties(operation['requestBody'], name)]);
    expect(sent.length).toBeGreaterThan(0);
    for (const schema of sent) expect(schema).toHaveProperty('pattern');
  });

  it('says of bytes how they are encoded', () => {
    const body = paths['/_fp/i/v1']?.['post']?.['requestBody'];
    for (const name of ['iv', 'ct', 'epk']) {
      expect([...properties(body, name)]).toMatchObject([{ contentEncoding: 'base64' }]);
    }
  });

  it('has no JSON answer without a schema but its own', () => {
    const open = operations.flatMap(({ what, operation }) =>
      Object.entries(operation['responses'] ?? {})
        .map(([status, answer]) => [status, answer['content']?.['application/json']] as const)
        .filter(([, media]) => media !== undefined && !('schema' in media))
        .map(([status]) => `${what} ${status}`),
    );
    expect(open).toEqual(['get /v1/embed/{version}/{language}.json 200', 'get /openapi.json 200']);
  });
});
