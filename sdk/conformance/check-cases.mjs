import { readFileSync } from 'node:fs';

/** Reads the shared cases and validates them: with the part of JSON Schema that schema.json uses. An unknown keyword is a problem too. */

/** @typedef {boolean | Readonly<Record<string, any>>} Schema */
/** @typedef {{ value: any, at: string, beside: Readonly<Record<string, any>>, definitions: Readonly<Record<string, Schema>> }} Instance */

/** @param {unknown} value @returns {value is Record<string, unknown>} */
export const isRecord = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param {unknown} value */
function typeOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

/** @param {boolean} holds @param {Instance} instance @param {string} problem @returns {string[]} */
const unless = (holds, { at }, problem) => (holds ? [] : [`${at}: ${problem}`]);

/** @param {Instance} instance @returns {[string, unknown][]} */
const fields = ({ value }) => (isRecord(value) ? Object.entries(value) : []);

/** @type {Readonly<Record<string, (rule: any, instance: Instance) => string[]>>} */
const KEYWORDS = {
  $ref: (rule, { value, at, definitions }) =>
    problems(value, definitions[rule.replace('#/$defs/', '')] ?? false, definitions, at),
  type: (rule, instance) =>
    unless([rule].flat().includes(typeOf(instance.value)), instance, `is ${typeOf(instance.value)}`),
  enum: (rule, instance) => unless(rule.includes(instance.value), instance, 'is none of the words'),
  const: (rule, instance) => unless(instance.value === rule, instance, `is not ${rule}`),
  pattern: (rule, instance) => {
    const holds = typeof instance.value === 'string' && new RegExp(rule).test(instance.value);
    return unless(holds, instance, 'does not match');
  },
  minItems: (rule, instance) =>
    unless(Array.isArray(instance.value) && instance.value.length >= rule, instance, 'is too short'),
  items: (rule, { value, at, definitions }) =>
    Array.isArray(value) ? value.flatMap((item, i) => problems(item, rule, definitions, `${at}[${i}]`)) : [],
  required: (rule, instance) =>
    rule.flatMap((/** @type {string} */ name) =>
      unless(isRecord(instance.value) && Object.hasOwn(instance.value, name), instance, `${name} is missing`),
    ),
  properties: (rule, instance) =>
    fields(instance)
      .filter(([name]) => Object.hasOwn(rule, name))
      .flatMap(([name, value]) =>
        problems(value, rule[name], instance.definitions, `${instance.at}.${name}`),
      ),
  additionalProperties: (rule, instance) =>
    fields(instance)
      .filter(([name]) => !Object.hasOwn(instance.beside['properties'] ?? {}, name))
      .flatMap(([name, value]) => problems(value, rule, instance.definitions, `${instance.at}.${name}`)),
  allOf: (rule, { value, at, definitions }) =>
    rule.flatMap((/** @type {Schema} */ inner) => problems(value, inner, definitions, at)),
  if: (rule, { value, at, beside, definitions }) => {
    const holds = problems(value, rule, definitions, at).length === 0;
    return problems(value, (holds ? beside['then'] : beside['else']) ?? true, definitions, at);
  },
};

const WITHOUT_RULE = new Set(['then', 'else', '$schema', 'title', 'description', '$defs']);

/**
 * @param {unknown} value @param {Schema} schema @param {Instance['definitions']} definitions @param {string} at
 * @returns {string[]} a sentence for each problem, with its place
 */
function problems(value, schema, definitions, at) {
  if (schema === true) return [];
  if (schema === false) return [`${at}: must not be there`];
  return Object.entries(schema).flatMap(([keyword, rule]) => {
    if (WITHOUT_RULE.has(keyword)) return [];
    const judge = KEYWORDS[keyword];
    if (!judge) return [`${at}: the schema has the unknown keyword ${keyword}`];
    return judge(rule, { value, at, beside: schema, definitions });
  });
}

/** @param {string} name @returns {any} */
const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'));

/**
 * @param {any} [file] by default cases.json
 * @returns {readonly any[]}
 * @throws {Error} for a file that the schema does not describe, or two cases of one name
 */
export function readCases(file = read('cases.json')) {
  const schema = read('schema.json');
  const found = problems(file, schema, schema.$defs, 'cases');
  if (found.length > 0) throw new Error(found.join('\n'));
  if (new Set(file.cases.map((/** @type {any} */ one) => one.name)).size !== file.cases.length)
    throw new Error('two cases have one name');
  return file.cases;
}
