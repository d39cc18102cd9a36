/** What a client of the published document could no longer rely on. */

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
}

interface Media {
  readonly schema?: Schema;
}

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly required?: boolean }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, Media>> }>>;
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const JSON_TYPE = 'application/json';

/** A request may get fewer demands and more values, never the other way round. */
function narrowedRequest(before: Schema, after: Schema, where: string): string[] {
  const demanded = (after.required ?? []).filter((name) => !(before.required ?? []).includes(name));
  const gone = Object.keys(before.properties ?? {}).filter((name) => after.properties?.[name] === undefined);
  const values = (before.enum ?? []).filter(
    (value) => after.enum !== undefined && !after.enum.includes(value),
  );
  const inner = Object.entries(before.properties ?? {}).flatMap(([name, schema]) => {
    const next = after.properties?.[name];
    return next ? narrowedRequest(schema, next, `${where}.${name}`) : [];
  });
  return [
    ...demanded.map((name) => `${where}: ${name} is required now`),
    ...gone.map((name) => `${where}: ${name} is not taken any more`),
    ...values.map((value) => `${where}: ${String(value)} is not taken any more`),
    ...inner,
    ...(before.items && after.items ? narrowedRequest(before.items, after.items, `${where}[]`) : []),
  ];
}

/** An answer may get more fields, never fewer and never of another type. */
function narrowedAnswer(before: Schema, after: Schema, where: string): string[] {
  const changed =
    JSON.stringify(before.type) === JSON.stringify(after.type) ? [] : [`${where}: another type`];
  const gone = (before.required ?? []).filter((name) => !(after.required ?? []).includes(name));
  const inner = Object.entries(before.properties ?? {}).flatMap(([name, schema]) => {
    const next = after.properties?.[name];
    return next ? narrowedAnswer(schema, next, `${where}.${name}`) : [];
  });
  return [
    ...changed,
    ...gone.map((name) => `${where}: ${name} is not always there any more`),
    ...inner,
    ...(before.items && after.items ? narrowedAnswer(before.items, after.items, `${where}[]`) : []),
  ];
}

function compareOperation(before: Operation, after: Operation, where: string): string[] {
  const known = new Set((before.parameters ?? []).map((parameter) => parameter.name));
  const demanded = (after.parameters ?? []).filter(
    ({ name, required }) => required === true && !known.has(name),
  );
  const bodies = [before, after].map((operation) => operation.requestBody?.content[JSON_TYPE]?.schema ?? {});
  const answers = Object.entries(before.responses).flatMap(([status, answer]) => {
    const next = after.responses[status];
    if (!next) return [`${where}: ${status} is gone`];
    const [old, now] = [answer, next].map((entry) => entry.content?.[JSON_TYPE]?.schema ?? {});
    return narrowedAnswer(old ?? {}, now ?? {}, `${where} ${status}`);
  });
  return [
    ...demanded.map(({ name }) => `${where}: the parameter ${name} is required now`),
    ...narrowedRequest(bodies[0] ?? {}, bodies[1] ?? {}, `${where} body`),
    ...answers,
  ];
}

export function incompatibleChanges(before: Document, after: Document): string[] {
  return Object.entries(before.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const where = `${method.toUpperCase()} ${path}`;
      const next = after.paths[path]?.[method];
      return next ? compareOperation(operation, next, where) : [`${where} is gone`];
    }),
  );
}
