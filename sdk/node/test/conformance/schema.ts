/** Validates the part of JSON Schema that schema.json uses; an unknown keyword is a problem too. */

export type Schema = boolean | { readonly [key: string]: unknown };

interface Instance {
  readonly value: unknown;
  readonly at: string;
  /** The schema that contains the keyword. */
  readonly beside: Readonly<Record<string, unknown>>;
  readonly definitions: Readonly<Record<string, Schema>>;
}

type Keyword = (rule: never, instance: Instance) => string[];

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

const unless = (holds: boolean, { at }: Instance, problem: string): string[] =>
  holds ? [] : [`${at}: ${problem}`];
const fields = ({ value }: Instance): [string, unknown][] => (isObject(value) ? Object.entries(value) : []);
const named = ({ beside }: Instance): Readonly<Record<string, Schema>> =>
  (beside['properties'] ?? {}) as Readonly<Record<string, Schema>>;

const KEYWORDS: Readonly<Record<string, Keyword>> = {
  $ref: (rule: string, { value, at, definitions }) =>
    problems(value, definitions[rule.replace('#/$defs/', '')] ?? false, definitions, at),
  type: (rule: string | string[], instance) =>
    unless([rule].flat().includes(typeOf(instance.value)), instance, `is ${typeOf(instance.value)}`),
  enum: (rule: unknown[], instance) =>
    unless(rule.includes(instance.value), instance, 'is none of the words'),
  const: (rule: unknown, instance) => unless(instance.value === rule, instance, `is not ${String(rule)}`),
  pattern: (rule: string, instance) =>
    unless(
      typeof instance.value === 'string' && new RegExp(rule).test(instance.value),
      instance,
      'does not match',
    ),
  minItems: (rule: number, instance) =>
    unless(Array.isArray(instance.value) && instance.value.length >= rule, instance, 'is too short'),
  items: (rule: Schema, { value, at, definitions }) =>
    Array.isArray(value) ? value.flatMap((item, i) => problems(item, rule, definitions, `${at}[${i}]`)) : [],
  required: (rule: string[], instance) =>
    rule.flatMap((name) =>
      unless(isObject(instance.value) && Object.hasOwn(instance.value, name), instance, `${name} is missing`),
    ),
  properties: (rule: Readonly<Record<string, Schema>>, instance) =>
    fields(instance)
      .filter(([name]) => Object.hasOwn(rule, name))
      .flatMap(([name, value]) =>
        problems(value, rule[name] ?? false, instance.definitions, `${instance.at}.${name}`),
      ),
  additionalProperties: (rule: Schema, instance) =>
    fields(instance)
      .filter(([name]) => !Object.hasOwn(named(instance), name))
      .flatMap(([name, value]) => problems(value, rule, instance.definitions, `${instance.at}.${name}`)),
  allOf: (rule: Schema[], { value, at, definitions }) =>
    rule.flatMap((inner) => problems(value, inner, definitions, at)),
  if: (rule: Schema, { value, at, beside, definitions }) => {
    const holds = problems(value, rule, definitions, at).length === 0;
    const branch = (holds ? beside['then'] : beside['else']) as Schema | undefined;
    return branch === undefined ? [] : problems(value, branch, definitions, at);
  },
};

const WITHOUT_RULE = new Set(['then', 'else', '$schema', 'title', 'description', '$defs']);

/** @returns a sentence for each problem, with its place */
export function problems(
  value: unknown,
  schema: Schema,
  definitions: Instance['definitions'],
  at: string,
): string[] {
  if (schema === true) return [];
  if (schema === false) return [`${at}: must not be there`];
  return Object.entries(schema).flatMap(([keyword, rule]) => {
    if (WITHOUT_RULE.has(keyword)) return [];
    const judge = KEYWORDS[keyword];
    if (!judge) return [`${at}: the schema has the unknown keyword ${keyword}`];
    return judge(rule as never, { value, at, beside: schema, definitions });
  });
}
