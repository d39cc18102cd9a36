/** As much of JSON Schema as schema.json uses; a keyword that is not known here is a problem too. */

export type Schema = boolean | { readonly [key: string]: unknown };

interface Asked {
  readonly value: unknown;
  readonly at: string;
  /** The schema that the keyword stands in. */
  readonly beside: Readonly<Record<string, unknown>>;
  readonly definitions: Readonly<Record<string, Schema>>;
}

type Keyword = (rule: never, asked: Asked) => string[];

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

const unless = (holds: boolean, { at }: Asked, why: string): string[] => (holds ? [] : [`${at}: ${why}`]);
const fields = ({ value }: Asked): [string, unknown][] => (isObject(value) ? Object.entries(value) : []);
const named = ({ beside }: Asked): Readonly<Record<string, Schema>> =>
  (beside['properties'] ?? {}) as Readonly<Record<string, Schema>>;

const KEYWORDS: Readonly<Record<string, Keyword>> = {
  $ref: (rule: string, { value, at, definitions }) =>
    problems(value, definitions[rule.replace('#/$defs/', '')] ?? false, definitions, at),
  type: (rule: string | string[], asked) =>
    unless([rule].flat().includes(typeOf(asked.value)), asked, `is ${typeOf(asked.value)}`),
  enum: (rule: unknown[], asked) => unless(rule.includes(asked.value), asked, 'is none of the words'),
  const: (rule: unknown, asked) => unless(asked.value === rule, asked, `is not ${String(rule)}`),
  pattern: (rule: string, asked) =>
    unless(typeof asked.value === 'string' && new RegExp(rule).test(asked.value), asked, 'does not match'),
  minItems: (rule: number, asked) =>
    unless(Array.isArray(asked.value) && asked.value.length >= rule, asked, 'is too short'),
  items: (rule: Schema, { value, at, definitions }) =>
    Array.isArray(value) ? value.flatMap((item, i) => problems(item, rule, definitions, `${at}[${i}]`)) : [],
  required: (rule: string[], asked) =>
    rule.flatMap((name) =>
      unless(isObject(asked.value) && Object.hasOwn(asked.value, name), asked, `${name} is missing`),
    ),
  properties: (rule: Readonly<Record<string, Schema>>, asked) =>
    fields(asked)
      .filter(([name]) => Object.hasOwn(rule, name))
      .flatMap(([name, value]) =>
        problems(value, rule[name] ?? false, asked.definitions, `${asked.at}.${name}`),
      ),
  additionalProperties: (rule: Schema, asked) =>
    fields(asked)
      .filter(([name]) => !Object.hasOwn(named(asked), name))
      .flatMap(([name, value]) => problems(value, rule, asked.definitions, `${asked.at}.${name}`)),
  allOf: (rule: Schema[], { value, at, definitions }) =>
    rule.flatMap((inner) => problems(value, inner, definitions, at)),
  if: (rule: Schema, { value, at, beside, definitions }) => {
    const holds = problems(value, rule, definitions, at).length === 0;
    const branch = (holds ? beside['then'] : beside['else']) as Schema | undefined;
    return branch === undefined ? [] : problems(value, branch, definitions, at);
  },
};

const WITHOUT_RULE = new Set(['then', 'else', '$schema', 'title', 'description', '$defs']);

/** @returns what is wrong, with the place */
export function problems(
  value: unknown,
  schema: Schema,
  definitions: Asked['definitions'],
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
