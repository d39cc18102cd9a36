import { readFileSync } from 'node:fs';

/** The shared file, typed, and held against its schema: what a runner does not know must fail. */

export interface Range {
  readonly min?: number;
  readonly max?: number;
}

export interface Expectation {
  readonly result?: unknown;
  readonly error?: Readonly<Record<string, unknown>>;
  readonly cancelled?: true;
  readonly elapsedMs?: Range;
  readonly hides?: readonly string[];
}

export interface Step {
  readonly call: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly waitMs?: number;
  readonly times?: number;
  readonly cancelAfterMs?: number;
  readonly expect: Expectation;
  readonly save?: Readonly<Record<string, string>>;
}

export interface RequestsExpectation {
  readonly count?: number;
  readonly connections?: Range;
  readonly idempotencyKey?: 'none' | 'one' | 'distinct';
  readonly gapsMs?: readonly Range[];
  readonly each?: {
    readonly method?: string;
    readonly path?: string;
    readonly headers?: Readonly<Record<string, unknown>>;
    readonly absentHeaders?: readonly string[];
    readonly body?: unknown;
  };
}

export interface Case {
  readonly name: string;
  readonly kind: 'live' | 'stub' | 'pure';
  readonly client?: Readonly<Record<string, unknown>> & { readonly key?: string };
  readonly script?: readonly unknown[];
  readonly steps: readonly Step[];
  readonly requests?: RequestsExpectation;
}

const FOLDER = new URL('../../../conformance/', import.meta.url);
const read = (name: string): unknown => JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as unknown;

type Schema = boolean | { readonly [key: string]: unknown };
type Named = Readonly<Record<string, Schema>>;

const IGNORED = ['$schema', 'title', 'description', '$defs'];
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

function isValid(value: unknown, schema: Schema, root: Named, at: string): boolean {
  try {
    validate(value, schema, root, at);
    return true;
  } catch {
    return false;
  }
}

/** As much of JSON Schema as schema.json uses; a keyword that is not known here throws too. */
export function validate(value: unknown, schema: Schema, root: Named, at: string): void {
  const fail = (why: string): never => {
    throw new Error(`${at}: ${why}`);
  };
  if (schema === true) return;
  if (schema === false) return fail('must not be there');
  const properties = (schema['properties'] ?? {}) as Named;
  for (const [keyword, rule] of Object.entries(schema)) {
    if (keyword === '$ref') {
      const target = root[String(rule).replace('#/$defs/', '')] ?? fail(`no ${String(rule)}`);
      validate(value, target, root, at);
    } else if (keyword === 'type') {
      if (![rule].flat().includes(typeOf(value))) fail(`is ${typeOf(value)}`);
    } else if (keyword === 'enum') {
      if (!(rule as unknown[]).includes(value)) fail(`${String(value)} is none of the words`);
    } else if (keyword === 'const') {
      if (value !== rule) fail(`is not ${String(rule)}`);
    } else if (keyword === 'pattern') {
      if (typeof value !== 'string' || !new RegExp(String(rule)).test(value)) fail('does not match');
    } else if (keyword === 'minItems') {
      if (!Array.isArray(value) || value.length < Number(rule)) fail('is too short');
    } else if (keyword === 'items') {
      for (const [i, item] of (value as unknown[]).entries())
        validate(item, rule as Schema, root, `${at}/${i}`);
    } else if (keyword === 'required') {
      for (const name of rule as string[])
        if (!isObject(value) || !Object.hasOwn(value, name)) fail(`${name} is missing`);
    } else if (keyword === 'properties') {
      for (const [name, inner] of Object.entries(properties))
        if (isObject(value) && Object.hasOwn(value, name))
          validate(value[name], inner, root, `${at}/${name}`);
    } else if (keyword === 'additionalProperties') {
      for (const [name, inner] of Object.entries(isObject(value) ? value : {}))
        if (!Object.hasOwn(properties, name)) validate(inner, rule as Schema, root, `${at}/${name}`);
    } else if (keyword === 'allOf') {
      for (const inner of rule as Schema[]) validate(value, inner, root, at);
    } else if (keyword === 'if') {
      const branch = isValid(value, rule as Schema, root, at) ? schema['then'] : schema['else'];
      if (branch !== undefined) validate(value, branch as Schema, root, at);
    } else if (!['then', 'else', ...IGNORED].includes(keyword)) {
      fail(`the schema has the unknown keyword ${keyword}`);
    }
  }
}

/** @throws for a file that the schema does not describe, or two cases of one name */
export function checkCases(file: unknown): readonly Case[] {
  const schema = read('schema.json') as { readonly $defs: Named };
  validate(file, schema as unknown as Schema, schema.$defs, 'cases.json');
  const { cases } = file as { readonly cases: readonly Case[] };
  const names = new Set(cases.map(({ name }) => name));
  if (names.size !== cases.length) throw new Error('two cases have one name');
  return cases;
}

export const readCases = (): unknown => read('cases.json');
