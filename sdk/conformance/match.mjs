/** Substitutes variables and compares results, as README.md says. */

import { isRecord } from './check-cases.mjs';

/** @typedef {Map<string, unknown>} Variables */

const VARIABLE = /\$\{(\w+)\}/g;

/** @param {any} value @param {Variables} variables @returns {any} @throws {Error} for an unknown name */
export function substitute(value, variables) {
  const variable = (/** @type {string} */ name) => {
    if (!variables.has(name)) throw new Error(`there is no variable ${name}`);
    return variables.get(name);
  };
  if (typeof value === 'string') {
    const whole = /^\$\{(\w+)\}$/.exec(value)?.[1];
    if (whole !== undefined) return variable(whole);
    return value.replace(VARIABLE, (_, name) => String(variable(name)));
  }
  if (Array.isArray(value)) return value.map((item) => substitute(item, variables));
  if (!isRecord(value)) return value;
  const repeated = value['$repeat'];
  if (Array.isArray(repeated) && Object.keys(value).length === 1)
    return Array.from({ length: repeated[1] }, () => substitute(repeated[0], variables));
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, substitute(inner, variables)]),
  );
}

const show = (/** @type {unknown} */ value) => JSON.stringify(value) ?? 'nothing';

/** @param {unknown} actual @param {string} name @param {any} rule @param {string} at */
function matchMatcher(actual, name, rule, at) {
  const bad = `${at}: ${show(actual)} is not ${name} ${show(rule)}`;
  switch (name) {
    case '$match':
      return typeof actual === 'string' && new RegExp(rule, 'u').test(actual) ? null : bad;
    case '$type': {
      if (!['string', 'integer', 'boolean'].includes(rule)) throw new Error(`no type ${show(rule)}`);
      return (Number.isInteger(actual) ? 'integer' : typeof actual) === rule ? null : bad;
    }
    case '$includes':
      return Array.isArray(actual) && actual.some((item) => difference(item, rule, at) === null) ? null : bad;
    default:
      throw new Error(`there is no matcher ${name}`);
  }
}

/**
 * @param {any} actual @param {any} expected @param {string} [at] @param {boolean} [exact] an object may have no unexpected field
 * @returns {string | null} the first difference
 */
export function difference(actual, expected, at = 'result', exact = false) {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length)
      return `${at}: ${show(actual)} is no list of ${expected.length}`;
    const each = expected.map((item, i) => difference(actual[i], item, `${at}[${i}]`, exact));
    return each.find((found) => found !== null) ?? null;
  }
  if (!isRecord(expected))
    return Object.is(actual ?? null, expected) ? null : `${at}: ${show(actual)}, expected ${show(expected)}`;
  const [[name, rule] = ['', null], ...otherEntries] = Object.entries(expected);
  if (name.startsWith('$') && otherEntries.length === 0) return matchMatcher(actual, name, rule, at);
  if (!isRecord(actual)) return `${at}: ${show(actual)} is no object`;
  const surplus = exact ? Object.keys(actual).filter((key) => !Object.hasOwn(expected, key)) : [];
  if (surplus.length > 0) return `${at}: ${surplus.join(', ')} must not be there`;
  const each = Object.entries(expected).map(([key, value]) =>
    difference(actual[key], value, `${at}.${key}`, exact),
  );
  return each.find((found) => found !== null) ?? null;
}

/** @param {number} value @param {{ min?: number, max?: number }} range */
export function within(value, { min = 0, max = Number.POSITIVE_INFINITY }) {
  return value >= min && value <= max;
}
